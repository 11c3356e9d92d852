#include "flux/rpc/fault_channel.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flux/rpc/fault_file.h"

namespace flux {

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
    std::optional<uint64_t> inner_id;  // while the inner channel has it
    std::function<void(Status, RpcReply)> done;
  };

  Executor& executor;
  std::unique_ptr<Channel> inner;
  FaultFile file;
  const std::vector<std::string> self, peer;
  std::unordered_map<uint64_t, Record> records;
  uint64_t last_id = 0;

  bool requests_vanish() { return file.at(executor.now_ns()).dropped(self, peer); }
  bool replies_vanish() { return file.at(executor.now_ns()).dropped(peer, self); }

  void end(uint64_t id, Status status, RpcReply reply) {
    const auto it = records.find(id);
    if (it == records.end()) return;
    const auto done = std::move(it->second.done);
    records.erase(it);
    if (done) done(std::move(status), std::move(reply));
  }

  // Nothing will come: the call ends when its time is over.
  void silence(uint64_t id) {
    Record& record = records.at(id);
    record.inner_id.reset();
    executor.post(std::max<TimeNs>(0, record.deadline - executor.now_ns()),
                  [weak = weak_from_this(), id] {
                    const auto state = weak.lock();
                    if (!state || !state->records.contains(id)) return;
                    const Verb verb = state->records.at(id).verb;
                    state->end(id,
                               error(Code::kUnavailable, "{}: verb {} was not answered in time",
                                     state->inner->peer(), verb),
                               {});
                  });
  }

  void over(uint64_t id, Status status, RpcReply reply) {
    const auto it = records.find(id);
    if (it == records.end()) return;
    if (status.code() != Code::kCancelled && executor.now_ns() < it->second.deadline &&
        replies_vanish())
      return silence(id);
    end(id, std::move(status), std::move(reply));
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
  if (s.requests_vanish()) {
    s.silence(id);
    return id;
  }
  call.done = [weak = s.weak_from_this(), id](Status status, RpcReply reply) {
    if (const auto state = weak.lock(); state && state->inner)
      state->over(id, std::move(status), std::move(reply));
  };
  record.inner_id = s.inner->call(std::move(call));
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
