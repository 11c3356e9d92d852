// Election: who is the coordinator of a job. Terms, leadership, and how others find the leader.
//
// Two things are kept apart. Leadership is a hint in time: at most one process should be at work,
// and standbys wait in campaign() for their turn. A term is the truth: a number that belongs to one
// process for ever. Everything a coordinator changes (manifests, shards) carries its term, and who
// sees a higher one refuses the lower; so a leader that was replaced without noticing it (paused,
// cut off) can do no harm, whatever clocks and leases say.
//
// A coordinator calls, in this order: announce(), campaign(), then claim_term() once; still_mine()
// before every change of the output folder and once more right before a manifest is committed;
// lease_held() from its tick, so that it ends soon after it was deposed; resign() at its end.
//
// Blocking calls, each with a deadline of some seconds except campaign(): for an Offload's thread.
// lease_held() and waiting_for() never block. Threads: any, at once. Nothing throws.
// Failure: kStale: somebody else leads, or may lead by now: this process must end. kUnavailable:
// who leads cannot be found out now: do not change anything, ask again. Messages name folder or
// endpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "flux/base/status.h"

namespace flux {

// What a claim publishes about its process.
struct Candidate {
  std::string name;     // for people: "host.pid"
  uint64_t id = 0;      // random, not 0: differs for every process that ever claims
  std::string address;  // for servers and workers: "tcp:10.0.0.1:7000"; may be empty
  std::string http;     // for people and tools: "http://10.0.0.1:8080"; may be empty
};

struct LeaderInfo {
  uint64_t term = 0;  // 0: it leads, but has not claimed a term yet
  Candidate who;      // what is not known is empty
};

class Election {
 public:
  virtual ~Election() = default;
  // Before campaign(), and again if an address changes: what is published from then on.
  virtual void announce(const Candidate& self) = 0;
  // Returns ok when this process leads; at once if it does already. A standby waits here for as
  // long as it takes. kCancelled soon after *stop turns true (may be null); kUnavailable if nobody
  // could be asked from the start on; an outage later on only makes the wait longer.
  virtual Status campaign(const std::atomic<bool>* stop) = 0;
  // What campaign() waits for, for people; empty when it does not.
  virtual std::string waiting_for() const = 0;
  // A term above `above` and above every term claimed before; nobody else ever gets it. `above` is
  // the highest term that manifests and servers know: they remember when the election's own memory
  // is lost. kStale if this process does not lead.
  virtual Result<uint64_t> claim_term(uint64_t above) = 0;
  // Asks: nobody has claimed a later term, and this process still leads. kStale names who took
  // over.
  virtual Status still_mine(uint64_t term) = 0;
  // What is known without asking: kStale once leadership may have ended, and for ever after.
  virtual Status lease_held() const = 0;
  // Who leads now; kNotFound: nobody.
  virtual Result<LeaderInfo> leader() = 0;
  // Lets the next one lead at once. What was claimed stays claimed; still_mine() fails from now on
  // where leadership exists (etcd). Not leading is fine.
  virtual Status resign() = 0;
};

}  // namespace flux
