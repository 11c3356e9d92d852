#include "flux/rpc/fault_channel.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flux/rpc/fault_file.h"

namespace flux {
namespace {

constexpr TimeNs kLookEvery = 50 * kMillisecond;

}  // namespace

struct FaultChannel::State : std::enable_shared_from_this<FaultChannel::State> {
  State(Executor& e, std::unique_ptr<Channel> c, const std::string& path, const std::string& me,
        const std::string& other)
      : executor(e),
        inner(std::move(c)),
        file(path),
        self(names_of_peer(me)),
        peer(names_of_peer(other)) {}

  struct Record {
    Verb verb = 0;
    TimeNs deadline = 0;
    std::optional<uint64_t> inner_id;                   // while the inner channel has it
    std::optional<RpcCall> unsent;                      // held on its way there
    std::optional<std::pair<Status, RpcReply>> answer;  // held on its way back
    std::function<void(Status, RpcReply)> done;
  };

  Executor& executor;
  std::unique_ptr<Channel> inner;
  FaultFile file;
  const std::vector<std::string> self, peer;
  std::unordered_map<uint64_t, Record> records;
  uint64_t last_id = 0;

  Faults::Way way_there() { return file.at(executor.now_ns()).way(self, peer); }
  Faults::Way way_back() { return file.at(executor.now_ns()).way(peer, self); }

  void end(uint64_t id, Status status, RpcReply reply) {
    const auto it = records.find(id);
    if (it == records.end()) return;
    const auto done = std::move(it->second.done);
    records.erase(it);
    if (done) done(std::move(status), std::move(reply));
  }

  void send(uint64_t id, RpcCall call) {
    call.done = [weak = weak_from_this(), id](Status status, RpcReply reply) {
      if (const auto state = weak.lock(); state && state->inner)
        state->over(id, std::move(status), std::move(reply));
    };
    records.at(id).inner_id = inner->call(std::move(call));
  }

  void over(uint64_t id, Status status, RpcReply reply) {
    const auto it = records.find(id);
    if (it == records.end()) return;
    it->second.inner_id.reset();
    const Faults::Way way = way_back();
    if (status.code() == Code::kCancelled || way == Faults::Way::kOpen)
      return end(id, std::move(status), std::move(reply));
    if (way == Faults::Way::kHeld) it->second.answer.emplace(std::move(status), std::move(reply));
    look_again(id);
  }

  // Nothing moves until the cut is healed or the call's time is over.
  void look_again(uint64_t id) {
    const TimeNs left = records.at(id).deadline - executor.now_ns();
    executor.post(std::clamp<TimeNs>(left, 0, kLookEvery), [weak = weak_from_this(), id] {
      const auto state = weak.lock();
      if (state && state->records.contains(id)) state->look(id);
    });
  }

  void look(uint64_t id) {
    Record& record = records.at(id);
    const TimeNs left = record.deadline - executor.now_ns();
    if (left <= 0)
      return end(id,
                 error(Code::kUnavailable, "{}: verb {} was not answered in time", inner->peer(),
                       record.verb),
                 {});
    if (record.answer && way_back() == Faults::Way::kOpen) {
      auto [status, reply] = std::move(*record.answer);
      return end(id, std::move(status), std::move(reply));
    }
    if (record.unsent && way_there() == Faults::Way::kOpen) {
      RpcCall call = std::move(*record.unsent);
      record.unsent.reset();
      call.timeout_ns = left;
      return send(id, std::move(call));
    }
    look_again(id);
  }
};

FaultChannel::FaultChannel(Executor& executor, std::unique_ptr<Channel> inner,
                           const std::string& file, const std::string& self,
                           const std::string& peer)
    : state_(std::make_shared<State>(executor, std::move(inner), file, self, peer)) {}

FaultChannel::~FaultChannel() {
  state_->inner.reset();
  const auto records = std::move(state_->records);
  state_->records.clear();
}

uint64_t FaultChannel::call(RpcCall call) {
  State& s = *state_;
  const uint64_t id = ++s.last_id;
  State::Record& record = s.records[id];
  record.verb = call.verb;
  record.deadline = s.executor.now_ns() + call.timeout_ns;
  record.done = std::move(call.done);
  const Faults::Way way = s.way_there();
  if (way == Faults::Way::kOpen) {
    s.send(id, std::move(call));
    return id;
  }
  if (way == Faults::Way::kHeld) record.unsent = std::move(call);
  s.look_again(id);
  return id;
}

void FaultChannel::cancel(uint64_t id) {
  const auto it = state_->records.find(id);
  if (it == state_->records.end()) return;
  if (it->second.inner_id) return state_->inner->cancel(*it->second.inner_id);
  state_->executor.post(0, [weak = state_->weak_from_this(), id] {
    if (const auto state = weak.lock())
      state->end(id, Status(Code::kCancelled, "the call was cancelled"), {});
  });
}

std::string FaultChannel::peer() const {
  return state_->inner->peer();
}

}  // namespace flux
