#include "flux/protocol/ledger.h"

#include <algorithm>
#include <bit>

#include "flux/base/check.h"

namespace flux {
namespace {
constexpr uint32_t kSectionsMax = 1U << 16;

Verdict verdict_at(uint64_t verdicts, uint32_t batch) {
  return static_cast<Verdict>((verdicts >> (2 * batch)) & 3);
}
Status corrupt(const ByteReader& in, const char* what) {
  return error(Code::kCorrupt, "ledger: {} at offset {}", what, in.offset());
}
}  // namespace

bool Ledger::OpenBlock::possible() const {
  if (block >= kBlocksPerSectionMax || batches == 0 || batches > kBatchesPerBlockMax) return false;
  uint64_t marked_bits = 0;
  for (uint32_t b = 0; b < batches; ++b) marked_bits |= ((mask >> b) & 1ULL) * 3ULL << (2 * b);
  const bool inside = (mask & ~batch_mask(batches)) == 0 && (verdicts & ~marked_bits) == 0;
  const bool complete = mask == batch_mask(batches) && verdicts == 0;  // would be finished
  return inside && mask != 0 && !complete;
}

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

bool Ledger::fits(const BatchId& id) const {
  if (id.batch >= id.batches_in_block || id.batches_in_block > kBatchesPerBlockMax) return false;
  if (id.block.block >= kBlocksPerSectionMax) return false;
  const Section* part = section(id.block);
  const OpenBlock* open = part == nullptr ? nullptr : part->find(id.block.block);
  return open == nullptr || open->batches == id.batches_in_block;
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
  FLUX_CHECK(fits(id), "{} of {} batches", to_string(id), id.batches_in_block);
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

Status Ledger::Section::decode(ByteReader* in) {
  finished_batches = in->get<uint64_t>();
  const auto words = in->get<uint32_t>();
  if (words > kBlocksPerSectionMax / 64 || words * 8ULL > in->left())
    return corrupt(*in, "too many blocks");
  uint64_t blocks = 0;
  for (uint32_t i = 0; i < words; ++i) {
    finished.push_back(in->get<uint64_t>());
    blocks += static_cast<uint64_t>(std::popcount(finished.back()));
  }
  if (finished_batches < blocks || finished_batches > blocks * kBatchesPerBlockMax ||
      (words > 0 && finished.back() == 0))
    return corrupt(*in, "impossible count of finished blocks");
  const auto open_count = in->get<uint32_t>();
  if (open_count > in->left() / 17) return corrupt(*in, "too many open blocks");
  for (uint32_t i = 0; i < open_count; ++i) {
    OpenBlock block;
    block.block = in->get<uint32_t>();
    block.mask = in->get<uint32_t>();
    block.verdicts = in->get<uint64_t>();
    block.batches = in->get<uint8_t>();
    const bool ordered = open.empty() || open.back().block < block.block;
    if (!ordered || !block.possible() || is_finished(block.block))
      return corrupt(*in, "impossible block");
    open.push_back(block);
  }
  return Status::ok();
}

Result<Ledger> Ledger::decode(ByteReader* in) {
  Ledger ledger;
  ledger.watermark_ = in->get<uint32_t>();
  const auto sections = in->get<uint32_t>();
  if (sections > kSectionsMax) return corrupt(*in, "too many sections");
  for (uint32_t s = 0; s < sections && in->ok(); ++s) {
    const auto pass = in->get<uint32_t>();
    const auto phase = in->get<uint16_t>();
    const auto epoch = in->get<uint16_t>();
    const SectionKey key{pass, phase, epoch};
    if (pass < ledger.watermark_) return corrupt(*in, "section below the watermark");
    if (!ledger.sections_.empty() && ledger.sections_.rbegin()->first >= key)
      return corrupt(*in, "sections out of order");
    Section& part = ledger.sections_[key];
    FLUX_RETURN_IF_ERROR(part.decode(in));
    if (part.finished.empty() && part.open.empty()) return corrupt(*in, "empty section");
  }
  if (!in->ok()) return corrupt(*in, "cut short");
  return ledger;
}

}  // namespace flux
