#include "flux/protocol/ledger.h"

#include <algorithm>
#include <bit>

#include "flux/base/check.h"

namespace flux {
namespace {
constexpr uint32_t kBlocksMax = 1U << 26;  // bound for a decoder: 64 M blocks in one section
constexpr uint32_t kSectionsMax = 1U << 16;

Verdict verdict_at(uint64_t verdicts, uint32_t batch) {
  return static_cast<Verdict>((verdicts >> (2 * batch)) & 3);
}
}  // namespace

bool Ledger::Section::is_finished(uint32_t block) const {
  return block / 64 < finished.size() && ((finished[block / 64] >> (block % 64)) & 1) != 0;
}

void Ledger::Section::set_finished(uint32_t block) {
  if (block / 64 >= finished.size()) finished.resize(block / 64 + 1, 0);
  finished[block / 64] |= 1ULL << (block % 64);
}

const Ledger::OpenBlock* Ledger::Section::find(uint32_t block) const {
  const auto at = std::lower_bound(open.begin(), open.end(), block,
                                   [](const OpenBlock& b, uint32_t n) { return b.block < n; });
  return at != open.end() && at->block == block ? &*at : nullptr;
}

Ledger::OpenBlock& Ledger::Section::find_or_add(const BatchId& id) {
  auto at = std::lower_bound(open.begin(), open.end(), id.block.block,
                             [](const OpenBlock& b, uint32_t n) { return b.block < n; });
  if (at == open.end() || at->block != id.block.block)
    at = open.insert(at, OpenBlock{id.block.block, 0, 0, id.batches_in_block});
  return *at;
}

const Ledger::Section* Ledger::section(const BlockId& id) const {
  const auto at = sections_.find({id.pass, id.phase, id.epoch});
  return at == sections_.end() ? nullptr : &at->second;
}

std::optional<Verdict> Ledger::find(const BatchId& id) const {
  if (id.block.pass < watermark_) return Verdict::kApplied;
  const Section* part = section(id.block);
  if (part == nullptr) return std::nullopt;
  if (part->is_finished(id.block.block)) return Verdict::kApplied;
  const OpenBlock* open = part->find(id.block.block);
  if (open == nullptr || ((open->mask >> id.batch) & 1) == 0) return std::nullopt;
  return verdict_at(open->verdicts, id.batch);
}

void Ledger::mark(const BatchId& id, Verdict verdict) {
  FLUX_CHECK(id.batch < id.batches_in_block && id.batches_in_block <= kBatchesPerBlockMax,
             "{} of {} batches", to_string(id), id.batches_in_block);
  FLUX_CHECK(!find(id).has_value(), "{} already has a verdict", to_string(id));
  Section& part = sections_[{id.block.pass, id.block.phase, id.block.epoch}];
  OpenBlock& open = part.find_or_add(id);
  open.mask |= 1U << id.batch;
  open.verdicts |= static_cast<uint64_t>(verdict) << (2 * id.batch);
  if (open.mask != batch_mask(open.batches) || open.verdicts != 0) return;
  part.finished_batches += open.batches;
  part.set_finished(id.block.block);
  part.open.erase(part.open.begin() + (&open - part.open.data()));
}

uint32_t Ledger::marked(const BlockId& id) const {
  if (id.pass < watermark_) return ~0U;
  const Section* part = section(id);
  if (part == nullptr) return 0;
  if (part->is_finished(id.block)) return ~0U;
  const OpenBlock* open = part->find(id.block);
  return open == nullptr ? 0 : open->mask;
}

void Ledger::close_below(uint32_t pass) {
  FLUX_CHECK(pass >= watermark_, "watermark goes back from {} to {}", watermark_, pass);
  watermark_ = pass;
  sections_.erase(sections_.begin(), sections_.lower_bound({pass, 0, 0}));
}

std::array<uint64_t, kVerdicts> Ledger::totals(uint32_t pass) const {
  std::array<uint64_t, kVerdicts> sum{};
  for (auto at = sections_.lower_bound({pass, 0, 0});
       at != sections_.end() && std::get<0>(at->first) == pass; ++at) {
    sum[0] += at->second.finished_batches;
    for (const OpenBlock& open : at->second.open)
      for (uint32_t b = 0; b < open.batches; ++b)
        if ((open.mask >> b) & 1) ++sum[static_cast<size_t>(verdict_at(open.verdicts, b))];
  }
  return sum;
}

void Ledger::encode(ByteWriter* out) const {
  out->put(watermark_);
  out->put(static_cast<uint32_t>(sections_.size()));
  for (const auto& [key, part] : sections_) {
    out->put(std::get<0>(key));
    out->put(std::get<1>(key));
    out->put(std::get<2>(key));
    out->put(part.finished_batches);
    out->put(static_cast<uint32_t>(part.finished.size()));
    for (const uint64_t word : part.finished) out->put(word);
    out->put(static_cast<uint32_t>(part.open.size()));
    for (const OpenBlock& open : part.open) {
      out->put(open.block);
      out->put(open.mask);
      out->put(open.verdicts);
      out->put(open.batches);
    }
  }
}

Result<Ledger> Ledger::decode(ByteReader* in) {
  Ledger ledger;
  const auto bad = [&](const char* what) {
    return error(Code::kCorrupt, "ledger: {} at offset {}", what, in->offset());
  };
  ledger.watermark_ = in->get<uint32_t>();
  const auto sections = in->get<uint32_t>();
  if (sections > kSectionsMax) return bad("too many sections");
  for (uint32_t s = 0; s < sections && in->ok(); ++s) {
    const auto pass = in->get<uint32_t>();
    const auto phase = in->get<uint16_t>();
    const auto epoch = in->get<uint16_t>();
    Section& part = ledger.sections_[{pass, phase, epoch}];
    part.finished_batches = in->get<uint64_t>();
    const auto words = in->get<uint32_t>();
    if (words > kBlocksMax / 64 || words * 8ULL > in->left()) return bad("too many blocks");
    for (uint32_t i = 0; i < words; ++i) part.finished.push_back(in->get<uint64_t>());
    const auto open_count = in->get<uint32_t>();
    if (open_count > in->left() / 17) return bad("too many open blocks");
    for (uint32_t i = 0; i < open_count; ++i) {
      OpenBlock open;
      open.block = in->get<uint32_t>();
      open.mask = in->get<uint32_t>();
      open.verdicts = in->get<uint64_t>();
      open.batches = in->get<uint8_t>();
      const bool ordered = part.open.empty() || part.open.back().block < open.block;
      if (!ordered || open.block >= kBlocksMax || open.batches == 0 ||
          open.batches > kBatchesPerBlockMax || (open.mask & ~batch_mask(open.batches)) != 0)
        return bad("impossible block");
      part.open.push_back(open);
    }
    if (pass < ledger.watermark_) return bad("section below the watermark");
  }
  if (!in->ok()) return bad("cut short");
  return ledger;
}

}  // namespace flux
