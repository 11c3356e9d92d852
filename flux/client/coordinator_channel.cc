#include "flux/client/coordinator_channel.h"

#include <algorithm>
#include <map>
#include <utility>

#include "flux/base/check.h"

namespace flux {
namespace {
constexpr uint32_t kFailuresToTurn = 2;
}

struct CoordinatorChannel::State {
  struct Call {
    size_t channel = 0;
    uint64_t id = 0;  // there
  };
  std::vector<std::unique_ptr<Channel>> channels;
  size_t at = 0;
  uint32_t failures = 0;  // of the channel in use, in a row
  uint64_t last = 0;
  std::map<uint64_t, Call> calls;

  // Of calls that fail together the first ones turn, not all.
  void ended(const Status& status) {
    failures = status.code() == Code::kUnavailable ? failures + 1 : 0;
    if (failures < kFailuresToTurn) return;
    failures = 0;
    at = (at + 1) % channels.size();
  }
};

CoordinatorChannel::CoordinatorChannel(std::vector<std::unique_ptr<Channel>> channels)
    : state_(std::make_shared<State>()) {
  FLUX_CHECK(!channels.empty(), "a coordinator has an address");
  state_->channels = std::move(channels);
}

CoordinatorChannel::~CoordinatorChannel() {
  state_->channels.clear();  // ends the calls under way
}

uint64_t CoordinatorChannel::call(RpcCall call) {
  State& s = *state_;
  const uint64_t number = ++s.last;
  const size_t used = s.at;
  call.done = [weak = std::weak_ptr<State>(state_), number, used, done = std::move(call.done)](
                  Status status, RpcReply reply) {
    const auto state = weak.lock();
    if (!state) return;
    state->calls.erase(number);
    if (state->at == used) state->ended(status);
    if (done) done(std::move(status), std::move(reply));
  };
  const uint64_t id = s.channels[used]->call(std::move(call));
  s.calls[number] = {used, id};
  return number;
}

void CoordinatorChannel::cancel(uint64_t id) {
  const auto at = state_->calls.find(id);
  if (at != state_->calls.end()) state_->channels[at->second.channel]->cancel(at->second.id);
}

std::string CoordinatorChannel::peer() const {
  return state_->channels[state_->at]->peer();
}

Result<std::vector<std::string>> split_addresses(std::string_view list) {
  std::vector<std::string> out;
  while (true) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string one(list.substr(0, comma));
    if (one.empty()) return invalid("an empty address in a list of coordinators");
    if (std::find(out.begin(), out.end(), one) != out.end())
      return invalid("coordinator {} is named twice", one);
    out.push_back(std::move(one));
    if (comma == list.size()) return out;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace flux
