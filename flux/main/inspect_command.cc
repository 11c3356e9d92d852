// flux inspect: what a checkpoint holds, and whether every byte of it is good.
#include <algorithm>

#include "flux/base/text.h"
#include "flux/checkpoint/store.h"
#include "flux/job/job.h"
#include "flux/main/commands.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

struct Found {
  std::string folder;
  uint64_t number = 0;
};

// An output folder, its checkpoints folder, one checkpoint, or a job file.
Result<Found> find_checkpoint(const std::string& path) {
  std::string folder = path;
  if (!path_exists(path)) return invalid("{} does not exist", path);
  if (!is_folder(path)) {
    FLUX_ASSIGN_OR_RETURN(const Job job, load_job(path, {}));
    folder = job.output;
  }
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (path_exists(join_path(folder, "manifest.json"))) {
    const std::string name = folder.substr(folder.find_last_of('/') + 1);
    if (name.size() < 6 || name.size() > 12 ||
        name.find_first_not_of("0123456789") != std::string::npos)
      return invalid("{} is not named like a checkpoint (000001)", folder);
    return Found{parent_folder(folder), std::stoull(name)};
  }
  if (is_folder(join_path(folder, "checkpoints"))) folder = join_path(folder, "checkpoints");
  const auto numbers = CheckpointStore(folder).committed();
  if (numbers.empty()) return invalid("no checkpoint in {}", folder);
  return Found{folder, numbers.back()};
}

void print_manifest(const CheckpointStore& store, const Manifest& m) {
  uint64_t rows = 0, bytes = 0;
  for (const ShardEntry& shard : m.shards) {
    rows += shard.rows;
    bytes += shard.file.bytes;
  }
  fmt::print("checkpoint {}\n  job {}, written {}\n  {} shards, {} rows and dense values, {}\n",
             store.path_of(m.number), m.job, m.created, m.shards.size(), with_commas(rows),
             human_bytes(bytes));
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
