// flux inspect: what a checkpoint holds, and whether every byte of it is good.
#include <algorithm>
#include <charconv>
#include <map>

#include "flux/base/text.h"
#include "flux/checkpoint/store.h"
#include "flux/job/job.h"
#include "flux/main/chosen_checkpoint.h"
#include "flux/main/commands.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

// An output folder, its checkpoints folder, one checkpoint, or a job file.
Result<CheckpointPlace> find_checkpoint(const std::string& path) {
  std::string folder = path;
  if (!path_exists(path)) return invalid("{} does not exist", path);
  if (!is_folder(path)) {
    FLUX_ASSIGN_OR_RETURN(const Job job, load_job(path, {}));
    folder = job.output;
  }
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (path_exists(join_path(folder, "manifest.json"))) return checkpoint_at(folder);
  if (path_exists(join_path(folder, "base.json")))
    return invalid("{} is no checkpoint any more; it is kept for files that newer ones need",
                   folder);
  if (is_folder(join_path(folder, "checkpoints"))) folder = join_path(folder, "checkpoints");
  FLUX_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, CheckpointStore(folder).committed());
  if (numbers.empty()) return invalid("no checkpoint in {}", folder);
  return CheckpointPlace{folder, numbers.back()};
}

// Shards that build on older files, and what lies where.
void print_chains(const CheckpointStore& store, const Manifest& m) {
  struct Part {
    uint64_t whole = 0, whole_bytes = 0, changes = 0, changes_bytes = 0;
  };
  std::map<uint64_t, Part> by_folder;
  size_t increments = 0, longest = 0;
  const auto add = [&](uint64_t number, const FileInfo& file, bool whole) {
    Part& part = by_folder[number];
    ++(whole ? part.whole : part.changes);
    (whole ? part.whole_bytes : part.changes_bytes) += file.bytes;
  };
  for (const ShardEntry& shard : m.shards) {
    increments += shard.chain.empty() ? 0 : 1;
    longest = std::max(longest, shard.chain.size());
    for (size_t i = 0; i < shard.chain.size(); ++i)
      add(shard.chain[i].number, shard.chain[i].file, i == 0);
    add(m.number, shard.file, shard.chain.empty());
  }
  if (increments == 0) return;
  fmt::print(
      "  {} shards are whole, {} build on older files; the longest chain has {} increments\n",
      m.shards.size() - increments, increments, longest);
  for (const auto& [number, part] : by_folder)
    fmt::print("  {}: {} whole files ({}), {} increments ({})\n", store.path_of(number), part.whole,
               human_bytes(part.whole_bytes), part.changes, human_bytes(part.changes_bytes));
}

// Rows lie in the first shards, dense parameters in those behind them.
size_t sparse_shards(const Manifest& m) {
  size_t sparse = m.shards.size();
  if (const auto said = m.model.find("shards"); said != m.model.end())
    std::from_chars(said->second.data(), said->second.data() + said->second.size(), sparse);
  return std::min(sparse, m.shards.size());
}

void print_manifest(const CheckpointStore& store, const Manifest& m) {
  uint64_t rows = 0, dense = 0, bytes = 0;
  const size_t sparse = sparse_shards(m);
  for (size_t s = 0; s < m.shards.size(); ++s) {
    const ShardEntry& shard = m.shards[s];
    (s < sparse ? rows : dense) += shard.rows;
    bytes += shard.file.bytes;
    for (const ChainLink& link : shard.chain) bytes += link.file.bytes;
  }
  fmt::print("checkpoint {}\n  job {}, written {}\n  {}, {}, {}, {}\n", store.path_of(m.number),
             m.job, m.created, counted(m.shards.size(), "shard"), counted(rows, "row"),
             counted(dense, "dense parameter"), human_bytes(bytes));
  print_chains(store, m);
  for (const ClosedPass& pass : m.closed)
    fmt::print("  pass {}: closed, {} examples x {}\n", pass.name, with_commas(pass.records),
               pass.repeats);
  if (m.geometry != 0)
    fmt::print("  pass {}: open, {} examples applied\n", m.open_pass, with_commas(m.examples));
  for (const auto& [name, value] : m.model) fmt::print("  {}: {}\n", name, value);
}

Status verify_files(const CheckpointStore& store, const Manifest& m) {
  for (size_t s = 0; s < m.shards.size(); ++s) {
    const auto image = store.read_shard(m, s);
    if (!image.is_ok()) return image.status();
  }
  for (const FileInfo& file : m.files) {
    const auto content = store.read(m, file);
    if (!content.is_ok()) return content.status();
  }
  return Status::ok();
}

}  // namespace

int inspect_command(const std::string& path, bool verify) {
  const auto found = find_checkpoint(path);
  if (!found.is_ok()) return report(found.status());
  const CheckpointStore store(found.value().folder);
  const auto manifest = store.load(found.value().number);
  if (!manifest.is_ok()) return report(manifest.status());
  print_manifest(store, manifest.value());
  if (!verify) return 0;
  const Status good = verify_files(store, manifest.value());
  if (!good.is_ok()) return report(good);
  fmt::print("  every file is good\n");
  return 0;
}

}  // namespace flux
