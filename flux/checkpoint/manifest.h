// Manifest: the one file whose appearance makes a checkpoint exist.
//
// It names every other file with size and hash, and holds what must agree before rows mean
// anything: the model's structure, the geometry of the open pass, what is closed. Text (JSON), with
// its own checksum; any change of any byte is noticed.
// Pure values and functions. Failure: kCorrupt names the path and what is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/checkpoint/shard_file.h"

namespace flux {

// One closed pass, for the accounting over the whole life of a model.
struct ClosedPass {
  std::string name;
  uint64_t records = 0;  // examples in its data
  uint32_t repeats = 1;  // phases x epochs
  uint64_t geometry = 0;
  uint64_t skipped_examples = 0;
  std::vector<uint64_t> skipped_by_phase = {};  // of a job with several
  uint64_t batches = 0;                         // in its data; 0: an older flux closed it
  uint64_t bad_records = 0;                     // of its data that were set aside, beside `records`

  size_t phases() const { return skipped_by_phase.empty() ? 1 : skipped_by_phase.size(); }
  bool operator==(const ClosedPass&) const = default;
};

// A file of an older checkpoint that a shard builds on.
struct ChainLink {
  uint64_t number = 0;  // of the checkpoint in whose folder it lies
  FileInfo file;
  uint64_t op = 0;
  uint64_t stream_hash = 0;
  bool operator==(const ChainLink&) const = default;
};

// One shard: its newest file, which lies in this checkpoint's folder. If that is an increment,
// `chain` has the files before it, oldest first: one whole file, then increments, each in the
// folder of an older checkpoint.
struct ShardEntry {
  FileInfo file;
  uint64_t op = 0;
  uint64_t stream_hash = 0;
  uint64_t rows = 0;  // of all its tables; of a dense shard: numbers
  std::vector<ChainLink> chain = {};
};

constexpr size_t kChainMax = 64;  // links that a reader accepts; writers stay far below

struct Manifest {
  uint64_t number = 0;  // of the checkpoint, rising
  std::string created;  // UTC, for people
  std::string job;
  uint64_t incarnation = 0;
  ShardEpoch epoch;
  // What must be equal for the rows to mean the same, by dotted name ("tables.embedding.dim").
  std::map<std::string, std::string> model;
  std::vector<ClosedPass> closed;
  uint64_t geometry = 0;  // of the open pass; 0: none is open
  std::string open_pass;  // its name
  uint64_t examples = 0;  // of the open pass that every shard has
  std::vector<ShardEntry> shards;
  std::vector<FileInfo> files;  // the rest: "geometry.json"
};

std::string encode_manifest(const Manifest& manifest);
Result<Manifest> decode_manifest(const std::string& path, std::string_view text);

// "tables.embedding.dim: 10 in the checkpoint, 16 in the job", one per difference.
std::vector<std::string> model_differences(const std::map<std::string, std::string>& checkpoint,
                                           const std::map<std::string, std::string>& job);

}  // namespace flux
