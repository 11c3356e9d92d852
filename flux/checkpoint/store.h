// CheckpointStore: the checkpoints of one job in one folder.
//
//   <folder>/000007/shard-0000 ... geometry.json manifest.json
//
// A checkpoint exists from the moment its manifest.json is renamed into place, after every other
// file is on disk. A folder without one is a leftover of a crash: never loaded, removed by
// remove_leftovers(). One writer per folder (the job's lock file sees to it). `files` is the disk,
// which a simulator replaces; it must outlive the store.
// Failure: kNotFound when there is no checkpoint; kCorrupt names the bad file, its offset, and the
// checkpoints that could be used instead. Nothing ever falls back silently.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/storage/files.h"

namespace flux {

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string folder, Files* files = &real_files())
      : folder_(std::move(folder)), files_(files) {}

  // Numbers of committed checkpoints, rising.
  std::vector<uint64_t> committed() const;
  bool is_committed(uint64_t number) const;
  Status remove_leftovers() const;
  std::string path_of(uint64_t number) const;

  // Newest manifest, checked.
  Result<Manifest> load_newest() const;
  Result<Manifest> load(uint64_t number) const;
  // A file of a checkpoint, checked against size and hash.
  Result<std::string> read(const Manifest& manifest, const FileInfo& file) const;
  Result<ShardImage> read_shard(const Manifest& manifest, size_t shard) const;
  // A shard file of checkpoint `number` as somebody who read the manifest named it.
  Result<ShardImage> read_shard(uint64_t number, const FileInfo& file) const;

  // Writing: begin() a number, add() files, commit() the manifest that names them.
  // The number is above all committed ones and above `last`: a caller who gives the number it used
  // last never uses one twice, whatever became of it.
  Result<uint64_t> begin(uint64_t last = 0) const;
  Result<FileInfo> add(uint64_t number, const std::string& name, std::string_view content) const;
  Status commit(const Manifest& manifest) const;
  // Removes what was written of a number that will not be committed.
  Status abandon(uint64_t number) const;
  // Removes all but the newest `keep`.
  Status prune(uint32_t keep) const;

 private:
  Status add_advice(const Status& status, uint64_t bad) const;
  Result<std::string> read_sized(const std::string& path, uint64_t bytes) const;

  std::string folder_;
  Files* files_;
};

}  // namespace flux
