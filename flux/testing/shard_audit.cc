#include "flux/testing/shard_audit.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "flux/base/hash.h"
#include "flux/checkpoint/store.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {
constexpr uint64_t kFileMax = 64ULL << 20;

template <typename T>
T read_at(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Result<std::string> read_named(Files* files, const std::string& folder, const FileInfo& file) {
  FLUX_ASSIGN_OR_RETURN(std::string bytes, files->read(join_path(folder, file.name), kFileMax));
  if (bytes.size() != file.bytes || hash_bytes(bytes) != file.hash)
    return error(Code::kCorrupt, "{}/{} is not what its manifest says", folder, file.name);
  return bytes;
}
}  // namespace

ShardAudit::ShardAudit(std::vector<Geometry> passes, Schedule schedule, uint32_t sparse_shards,
                       uint32_t all_shards, const std::vector<SimFlaws>& flaws)
    : sparse_shards_(sparse_shards), all_shards_(all_shards), schedule_(schedule) {
  for (uint32_t p = 0; p < passes.size(); ++p)
    for (uint32_t i = 0; i < schedule_.sections(); ++i)
      add_batches(passes[p], schedule_.section(p, i), p < flaws.size() ? flaws[p] : SimFlaws());
}

void ShardAudit::add_batches(const Geometry& geometry, const BlockId& section,
                             const SimFlaws& flaws) {
  for (uint32_t block = 0; block < geometry.blocks.size(); ++block) {
    const std::vector<uint32_t> order = block_order(geometry, block, section.epoch);
    const uint32_t count = geometry.batches_in(block);
    for (uint32_t b = 0; b < count; ++b) {
      KnownBatch known;
      known.id = {section, static_cast<uint8_t>(b), static_cast<uint8_t>(count)};
      known.id.block.block = block;
      known.records = geometry.batch_records(block, b);
      known.keys.resize(sparse_shards_);
      for (uint64_t i = 0; i < known.records; ++i) {
        const uint64_t record =
            geometry.blocks[block].first_record + order[b * geometry.batch_size + i];
        known.flawed = known.flawed || flaws.has(record);
        for (const Key key :
             {sim_own_key(section.pass, record), sim_shared_key(section.pass, record)})
          ++known.keys[shard_of(key, sparse_shards_)][key];
      }
      batches_.push_back(std::move(known));
      ++by_pass_[section.pass];
    }
  }
}

std::string ShardAudit::check(const ShardImage& image) const {
  const ShardId shard = image.replica.shard();
  const Ledger& ledger = image.replica.ledger();
  if (shard >= all_shards_) return fmt::format("there is no shard {}", shard);
  std::map<Key, uint32_t> expected, maybe;
  std::map<uint32_t, uint64_t> marked;
  uint64_t examples = 0, maybe_examples = 0;
  for (const KnownBatch& batch : batches_) {
    const auto verdict = ledger.find(batch.id);
    if (!verdict) continue;
    const bool decided = skipped_.contains(batch.id);
    if (*verdict != Verdict::kApplied && (*verdict != Verdict::kSkipped || !decided))
      return fmt::format("shard {}: {} is {}, which nobody decided", shard, to_string(batch.id),
                         verdict_name(*verdict));
    ++marked[batch.id.block.pass];
    const bool open = batch.id.block.pass >= ledger.watermark();
    if (batch.flawed && open && *verdict == Verdict::kApplied)
      return fmt::format("shard {}: {} is applied, which nobody can train", shard,
                         to_string(batch.id));
    if (*verdict == Verdict::kSkipped || batch.flawed) continue;
    // A shard may have applied a batch before it was skipped elsewhere; the ledger of a closed pass
    // has forgotten which it was.
    const bool unknown = decided && !open;
    // A dense shard is of one phase.
    if (shard < sparse_shards_ || batch.id.block.phase == shard - sparse_shards_)
      (unknown ? maybe_examples : examples) += batch.records;
    if (shard >= sparse_shards_) continue;
    for (const auto& [key, n] : batch.keys[shard]) (unknown ? maybe : expected)[key] += n;
  }
  for (const auto& [pass, count] : by_pass_) {
    if (pass < ledger.watermark()) continue;  // closed: the ledger has forgotten the batches
    uint64_t all = 0;
    for (const uint64_t n : ledger.totals(pass)) all += n;
    if (all != marked[pass])
      return fmt::format("shard {}: the ledger of pass {} has {} marks, {} of them known batches",
                         shard, pass, all, marked[pass]);
  }
  if (shard < sparse_shards_) return check_rows(image, expected, maybe);
  if (image.tables.size() != 1 || image.tables[0].bytes.size() < 24)
    return fmt::format("dense shard {} has no rows", shard);
  const uint64_t counted = read_at<uint64_t>(image.tables[0].bytes, 16);
  if (counted >= examples && counted <= examples + maybe_examples) return "";
  return fmt::format("dense shard {}: rows say {} examples, the ledger {}", shard, counted,
                     examples);
}

std::string ShardAudit::check_rows(const ShardImage& image, const std::map<Key, uint32_t>& expected,
                                   const std::map<Key, uint32_t>& maybe) const {
  const ShardId shard = image.replica.shard();
  if (image.tables.size() != 1) return fmt::format("shard {} has no table", shard);
  const TableImage& table = image.tables[0];
  if (table.row_bytes < 12 || table.bytes.size() != table.rows * table.row_bytes)
    return fmt::format("shard {}: {} bytes are not {} rows", shard, table.bytes.size(), table.rows);
  std::map<Key, uint32_t> found;
  for (size_t at = 0; at < table.bytes.size(); at += table.row_bytes)
    found[read_at<uint64_t>(table.bytes, at)] = read_at<uint32_t>(table.bytes, at + 8);
  if (found == expected) return "";
  for (const auto& [key, count] : found) {
    const auto it = expected.find(key);
    const uint32_t said = it == expected.end() ? 0 : it->second;
    const auto more = maybe.find(key);
    if (count < said || count > said + (more == maybe.end() ? 0 : more->second))
      return fmt::format("shard {}: key {:x} counts {}, the ledger says {}", shard, key, count,
                         said);
  }
  for (const auto& [key, count] : expected)
    if (!found.contains(key))
      return fmt::format("shard {}: key {:x} has no row, the ledger says {}", shard, key, count);
  return "";
}

std::string ShardAudit::check_complete(const ShardImage& image, uint32_t passes) const {
  std::string wrong = check(image);
  if (!wrong.empty()) return wrong;
  for (const KnownBatch& batch : batches_)
    if (batch.id.block.pass < passes && !image.replica.ledger().find(batch.id))
      return fmt::format("shard {} lacks {}", image.replica.shard(), to_string(batch.id));
  return "";
}

std::pair<uint64_t, uint64_t> ShardAudit::skipped_examples(uint32_t pass) const {
  uint64_t least = 0, most = 0;
  for (const KnownBatch& batch : batches_) {
    if (batch.id.block.pass != pass) continue;
    if (batch.flawed) least += batch.records;
    if (skipped_.contains(batch.id)) most += batch.records;
  }
  return {least, most};
}

std::string ShardAudit::check_skipped(uint32_t pass, uint64_t told) const {
  for (const KnownBatch& batch : batches_)
    if (batch.id.block.pass == pass && batch.flawed && !skipped_.contains(batch.id))
      return fmt::format("pass {} is closed, but {} was never set aside", pass,
                         to_string(batch.id));
  const auto [least, most] = skipped_examples(pass);
  if (told >= least && told <= most) return "";
  return fmt::format("pass {} is closed with {} examples skipped, not {} to {}", pass, told, least,
                     most);
}

std::string ShardAudit::check_accounts(const std::vector<ClosedPass>& closed,
                                       const JobTotals& totals, uint64_t batches_skipped) const {
  uint64_t expected = 0, skipped = 0, least = 0;
  for (uint32_t p = 0; p < closed.size(); ++p) {
    std::string wrong = check_skipped(p, closed[p].skipped_examples);
    if (!wrong.empty()) return wrong;
    expected += closed[p].records * closed[p].repeats;
    skipped += closed[p].skipped_examples;
    least += skipped_examples(p).first;
  }
  uint64_t min = 0, max = 0;  // over the phases, each with dense shards of its own
  for (const DenseExamples& dense : totals.dense) {
    min += dense.min;
    max += dense.max;
  }
  const bool any = std::all_of(totals.dense.begin(), totals.dense.end(),
                               [](const DenseExamples& dense) { return dense.any(); });
  if (any && !totals.dense.empty() && (min < expected - skipped || max > expected - least))
    return fmt::format("{} to {} examples are applied of {}, {} skipped", min, max, expected,
                       skipped);
  if (batches_skipped > skipped_.size())
    return fmt::format("{} batches are counted as skipped, {} are", batches_skipped,
                       skipped_.size());
  return "";
}

std::string ShardAudit::check_checkpoint(Files* files, const std::string& folder,
                                         size_t closed) const {
  const std::string path = join_path(folder, "manifest.json");
  const auto text = files->read(path, kFileMax);
  if (!text.is_ok()) return text.status().message();
  const auto manifest = decode_manifest(path, text.value());
  if (!manifest.is_ok()) return manifest.status().message();
  const Manifest& m = manifest.value();
  if (m.shards.size() != all_shards_)
    return fmt::format("{}: {} shards of {}", path, m.shards.size(), all_shards_);
  if (m.closed.size() < closed)
    return fmt::format("{}: {} passes are closed of {}", path, m.closed.size(), closed);
  for (uint32_t p = 0; p < m.closed.size(); ++p)
    if (std::string wrong = check_skipped(p, m.closed[p].skipped_examples); !wrong.empty())
      return fmt::format("{}: {}", path, wrong);
  for (const FileInfo& file : m.files)
    if (const auto read = read_named(files, folder, file); !read.is_ok())
      return read.status().message();
  const CheckpointStore store(parent_folder(folder), files);
  std::vector<std::optional<Verdict>> first;  // of shard 0, by batch
  for (size_t s = 0; s < m.shards.size(); ++s) {
    const auto image = store.read_shard(m, s);
    if (!image.is_ok()) return image.status().message();
    if (image.value().replica.shard() != s)
      return fmt::format("{}: file {} holds shard {}", path, s, image.value().replica.shard());
    std::string wrong = check_complete(image.value(), static_cast<uint32_t>(m.closed.size()));
    if (!wrong.empty()) return fmt::format("{}: {}", folder, wrong);
    std::vector<std::optional<Verdict>> verdicts;
    for (const KnownBatch& batch : batches_)
      if (batch.id.block.pass < m.closed.size() && !skipped_.contains(batch.id))
        verdicts.push_back(image.value().replica.ledger().find(batch.id));
    if (s == 0) first = verdicts;
    if (verdicts != first)
      return fmt::format("{}: shards 0 and {} disagree about verdicts", folder, s);
  }
  return "";
}

}  // namespace flux
