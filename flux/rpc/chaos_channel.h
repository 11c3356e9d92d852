// ChaosChannel: a Channel with faults in front of another one: lost requests, lost replies, calls
// sent twice, late or out of order. The same seed gives the same faults for the same calls.
//
// What a caller sees is what a bad network shows: kUnavailable when its time is over, or an answer
// that is late. The call's memory stays in use until every copy of it is over, and then `done` is
// called once. For tests and `--chaos` of the workers.
// Threads and ownership: those of the inner channel, which it owns; the executor outlives it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/rpc/channel.h"

namespace flux {

struct ChaosOptions {
  uint64_t seed = 1;
  double request = 0;      // chance that the request is lost
  double reply = 0;        // that the reply is lost
  double doubled = 0;      // that the call is sent twice ("double")
  double delay = 1;        // that the call is late, by up to delay_ms
  double reorder = 0;      // that the next call overtakes it
  int64_t delay_ms = 0;    //
  int64_t timeout_ms = 0;  // what is lost is given up after so long; 0: the call's own time
  bool any() const {
    return request > 0 || reply > 0 || doubled > 0 || reorder > 0 || (delay > 0 && delay_ms > 0);
  }
};

// "seed=7,request=0.25,reply=0.25,double=0.1,delay_ms=50"; kInvalid says which part is wrong.
Result<ChaosOptions> parse_chaos(std::string_view text);

class ChaosChannel final : public Channel {
 public:
  ChaosChannel(Executor& executor, std::unique_ptr<Channel> inner, const ChaosOptions& options);
  ~ChaosChannel() override;
  uint64_t call(RpcCall call) override;
  void cancel(uint64_t id) override;
  std::string peer() const override;

  struct Counts {
    uint64_t calls = 0, requests_lost = 0, replies_lost = 0, doubled = 0, delayed = 0;
    uint64_t reordered = 0;
  };
  const Counts& counts() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
