// CheckpointStore: the checkpoints of one job in one folder.
//
//   <folder>/000005/shard-00000 ... base.json                    a base: newer ones need its files
//   <folder>/000007/shard-00000.changes ... geometry.json manifest.json
//   <folder>/.claims/000007                                      who created it owns the number
//
// A checkpoint exists from the moment its manifest.json is renamed into place, after every other
// file is on disk. Its shards may build on files of older checkpoints. prune() turns those whose
// files are still needed into bases: base.json in place of manifest.json. A folder with neither is
// a leftover of a crash: never loaded, removed by remove_leftovers(). A number is used once:
// begin() claims it by a file that only one caller can create, so two coordinators never write into
// one folder. `files` is the disk, which a simulator replaces; it must outlive the store. Threads:
// reading is safe from any thread; one writer at a time. Failure: kNotFound when there is no
// checkpoint; kCorrupt names the bad file, its offset, and the checkpoints that could be used
// instead. Nothing ever falls back silently.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/storage/files.h"

namespace flux {

class CheckpointStore {
 public:
  explicit CheckpointStore(std::string folder, Files* files = &real_files())
      : folder_(std::move(folder)), files_(files) {}

  // Numbers of committed checkpoints, rising. A folder that cannot be read is not an empty one.
  Result<std::vector<uint64_t>> committed() const;
  bool is_committed(uint64_t number) const;
  // All that can be; the first failure otherwise (somebody may write there still).
  Status remove_leftovers() const;
  std::string path_of(uint64_t number) const;

  // Newest manifest, checked.
  Result<Manifest> load_newest() const;
  Result<Manifest> load(uint64_t number) const;
  // A file of a checkpoint, checked against size and hash.
  Result<std::string> read(const Manifest& manifest, const FileInfo& file) const;
  // A shard as the checkpoint has it: its whole file with every increment after it.
  Result<ShardImage> read_shard(const Manifest& manifest, size_t shard) const;
  // The same, as somebody who read the manifest of checkpoint `number` named it.
  Result<ShardImage> read_shard(uint64_t number, const ShardEntry& entry) const;
  // The protocol state of a shard, from its newest file alone, all of which is checked.
  Result<ShardReplica> read_state(const Manifest& manifest, size_t shard) const;

  // Writing: begin() a number, add() files, commit() the manifest that names them.
  // The number is above all that were ever begun here, and above `last`; its folder is empty.
  Result<uint64_t> begin(uint64_t last = 0) const;
  Result<FileInfo> add(uint64_t number, const std::string& name, std::string_view content) const;
  // kStale if a newer checkpoint is committed already; kCorrupt if a file that the manifest names
  // is not there.
  Status commit(const Manifest& manifest) const;
  // Removes what was written of a number that will not be committed.
  Status abandon(uint64_t number) const;
  // Removes all but the newest `keep` (and number `also`) and the files that they need. Killed at
  // any moment it leaves whole checkpoints, and what remains to be done is done by the next one. If
  // a kept one cannot be read, nothing is removed.
  Status prune(uint32_t keep, uint64_t also = 0) const;

 private:
  using Place = std::pair<uint64_t, std::string>;  // number of the folder, name of the file
  Status add_advice(const Status& status, uint64_t bad, const Place& file) const;
  Result<std::string> read_sized(const std::string& path, uint64_t bytes) const;
  std::string path_in(uint64_t number, std::string_view name) const;
  Status check_named_files(const Manifest& manifest) const;
  Result<std::set<Place>> needed_by(const std::vector<uint64_t>& numbers) const;
  Status retire(uint64_t number, bool is_base) const;
  Status sweep(uint64_t number, const std::set<Place>& needed) const;

  std::string folder_;
  Files* files_;
};

}  // namespace flux
