// DecisionLog: what the coordinator decided and must not decide otherwise after a crash.
//
// One JSON object per line, each with a checksum, appended and flushed before the decision takes
// effect: verdicts about batches, passes, members. It is bounded: rewritten at every start. Lines
// that a writer left torn, or that are damaged, are not taken for anything and are named: what was
// in them is in the ledgers of the shards too, or has had no effect yet.
// Blocking (disk): called through an Offload. Threads: one caller at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/cluster/lr_policy.h"
#include "flux/protocol/batch_id.h"
#include "flux/storage/files.h"

namespace flux {

struct Decision {
  // "open_pass", "verdict", "tested", "look", "stop", "end"; of members "server", "server_gone",
  // "worker", "worker_gone", "drain" (of a server), "move" (shard `id` to server `member`;
  // `why` says "load" unless an operator asked for it); "lr";
  // "term": a coordinator began
  std::string kind;
  uint64_t term = 0;
  uint32_t pass = 0;
  std::string pass_name;
  uint64_t geometry = 0;
  BatchId batch;  // of a verdict
  Verdict verdict = Verdict::kApplied;
  std::string why;
  std::string member;  // of servers and workers: name
  uint64_t boot = 0;
  uint64_t id = 0;   // ServerId or WorkerId
  LrPolicyState lr;  // of "lr": where the learning-rate policy stands
  // Of "tested" and "look": what a stop condition saw, and the checkpoint of that moment.
  std::optional<double> value = {};
  uint64_t checkpoint = 0;
};

// What the next life of the job needs of a log: decisions about passes from `closed` - 1 on, and
// members that were not said to be gone. A coordinator that was replaced may write still: what it
// says about members after a later term has begun is not taken.
std::vector<Decision> compact(const std::vector<Decision>& decisions, uint32_t closed);

class DecisionLog {
 public:
  DecisionLog(Files* files, std::string path) : files_(files), path_(std::move(path)) {}
  Status append(const Decision& decision);
  // Everything that was decided.
  Result<std::vector<Decision>> read();
  // Numbers of the lines that the last read() could not use.
  const std::vector<size_t>& damaged() const { return damaged_; }
  // Puts these in place of everything.
  Status rewrite(const std::vector<Decision>& decisions);
  Status forget() { return files_->remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  Files* files_;
  std::string path_;
  std::vector<size_t> damaged_;
};

}  // namespace flux
