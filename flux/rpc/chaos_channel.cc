#include "flux/rpc/chaos_channel.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flux/base/random.h"
#include "flux/base/text.h"

namespace flux {
namespace {

constexpr TimeNs kHoldMax = 20 * kMillisecond;  // a call waits so long for one that overtakes it

template <typename T>
Status parse_number(std::string_view name, std::string_view text, T most, T* out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (failed == std::errc() && end == text.data() + text.size() && *out >= 0 && *out <= most)
    return Status::ok();
  return invalid("chaos: {}={}: give a number from 0 to {}", name, text, most);
}

Status set_option(std::string_view name, std::string_view value, ChaosOptions* o) {
  constexpr int64_t kDayMs = 86'400'000;
  if (name == "seed") return parse_number<uint64_t>(name, value, ~0ULL, &o->seed);
  if (name == "delay_ms") return parse_number<int64_t>(name, value, kDayMs, &o->delay_ms);
  if (name == "timeout_ms") return parse_number<int64_t>(name, value, kDayMs, &o->timeout_ms);
  const std::pair<const char*, double*> chances[] = {{"request", &o->request},
                                                     {"reply", &o->reply},
                                                     {"double", &o->doubled},
                                                     {"delay", &o->delay},
                                                     {"reorder", &o->reorder}};
  std::vector<std::string> names = {"seed", "delay_ms", "timeout_ms"};
  for (const auto& [known, place] : chances) {
    if (name == known) return parse_number<double>(name, value, 1.0, place);
    names.emplace_back(known);
  }
  return invalid("chaos: '{}' is not known{}; there are: {}", name, did_you_mean(name, names),
                 join(names, ", "));
}

}  // namespace

Result<ChaosOptions> parse_chaos(std::string_view text) {
  ChaosOptions options;
  if (text.empty()) return options;
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos)
      return invalid("chaos: '{}' is not name=value, as in seed=7,request=0.25", part);
    FLUX_RETURN_IF_ERROR(set_option(std::string_view(part).substr(0, equals),
                                    std::string_view(part).substr(equals + 1), &options));
  }
  return options;
}

struct ChaosChannel::State : std::enable_shared_from_this<ChaosChannel::State> {
  State(Executor& e, std::unique_ptr<Channel> c, const ChaosOptions& o)
      : executor(e), inner(std::move(c)), options(o), random(o.seed) {}

  struct Record {
    RpcCall call;
    int open = 0;          // inner calls that are not over
    bool waiting = false;  // for a time-out or a turn
    bool reply_lost = false;
    bool doubled = false;
    bool cancelled = false;
    bool answered = false;
    std::vector<uint64_t> inner_ids;
    Status status;
    RpcReply reply;
  };

  Executor& executor;
  std::unique_ptr<Channel> inner;
  ChaosOptions options;
  Random random;
  Counts counts;
  std::unordered_map<uint64_t, Record> records;
  std::vector<uint64_t> held;  // calls that wait to be overtaken
  uint64_t last_id = 0;
  bool closed = false;

  void later(TimeNs delay_ns, uint64_t id, void (State::*step)(uint64_t)) {
    executor.post(delay_ns, [weak = weak_from_this(), id, step] {
      const auto self = weak.lock();
      if (self && !self->closed) ((*self).*step)(id);
    });
  }

  TimeNs patience(const Record& record) const {
    const TimeNs own = record.call.timeout_ns;
    return options.timeout_ms > 0 ? std::min(own, options.timeout_ms * kMillisecond) : own;
  }

  void forward(uint64_t id, bool first) {
    const auto it = records.find(id);
    Record& record = it->second;
    ++record.open;
    RpcCall call;
    call.verb = record.call.verb;
    call.control = record.call.control;
    call.payload = record.call.payload;
    call.timeout_ns = record.call.timeout_ns;
    const bool heard = first && !record.reply_lost;
    if (heard) call.place = record.call.place;
    call.done = [weak = weak_from_this(), id, heard](const Status& status, RpcReply reply) {
      const auto self = weak.lock();
      if (self && !self->closed) self->over(id, heard, status, std::move(reply));
    };
    record.inner_ids.push_back(inner->call(std::move(call)));
  }

  void over(uint64_t id, bool heard, const Status& status, RpcReply reply) {
    Record& record = records.at(id);
    --record.open;
    if (heard) {
      record.answered = true;
      record.status = status;
      record.reply = std::move(reply);
    }
    finish_if_over(id);
  }

  void send(uint64_t id) {
    const auto it = records.find(id);
    if (it == records.end()) return;
    it->second.waiting = false;
    if (!it->second.cancelled) {
      if (it->second.reply_lost) {
        it->second.waiting = true;
        later(patience(it->second), id, &State::give_up);
      }
      forward(id, true);
      if (records.at(id).doubled) forward(id, false);
    }
    finish_if_over(id);
  }

  void release(uint64_t id) {
    if (std::erase(held, id) > 0) send(id);
  }

  void give_up(uint64_t id) {
    const auto it = records.find(id);
    if (it == records.end()) return;
    it->second.waiting = false;
    finish_if_over(id);
  }

  void finish_if_over(uint64_t id) {
    const auto it = records.find(id);
    if (it == records.end() || it->second.open > 0) return;
    if (it->second.waiting && !it->second.cancelled) return;
    Record record = std::move(it->second);
    records.erase(it);
    std::erase(held, id);
    if (record.cancelled && !record.answered) {
      record.status = Status(Code::kCancelled, "the call was cancelled");
    } else if (!record.answered) {
      record.status = error(Code::kUnavailable, "{}: verb {} was not answered within {} ms (chaos)",
                            inner->peer(), record.call.verb, patience(record) / kMillisecond);
    }
    if (record.call.done) record.call.done(std::move(record.status), std::move(record.reply));
  }

  void cancel(uint64_t id) {
    const auto it = records.find(id);
    if (it == records.end()) return;
    it->second.cancelled = true;
    const std::vector<uint64_t> ids = it->second.inner_ids;
    for (const uint64_t inner_id : ids) inner->cancel(inner_id);
    finish_if_over(id);
  }
};

ChaosChannel::ChaosChannel(Executor& executor, std::unique_ptr<Channel> inner,
                           const ChaosOptions& options)
    : state_(std::make_shared<State>(executor, std::move(inner), options)) {}

ChaosChannel::~ChaosChannel() {
  state_->closed = true;
  state_->inner.reset();
  const auto records = std::move(state_->records);
  state_->records.clear();
}

uint64_t ChaosChannel::call(RpcCall call) {
  State& s = *state_;
  const uint64_t id = ++s.last_id;
  const std::vector<uint64_t> overtaken = std::exchange(s.held, {});
  // All draws are made for every call, so that one chance does not move the others' draws.
  const bool request_lost = s.random.chance(s.options.request);
  const bool reply_lost = s.random.chance(s.options.reply);
  const bool doubled = s.random.chance(s.options.doubled);
  const bool delayed = s.random.chance(s.options.delay) && s.options.delay_ms > 0;
  const bool reordered = s.random.chance(s.options.reorder);
  const auto delay = static_cast<TimeNs>(s.random.uniform() *
                                         static_cast<double>(s.options.delay_ms * kMillisecond));
  State::Record& record = s.records[id];
  record.call = std::move(call);
  record.reply_lost = reply_lost;
  record.doubled = doubled;
  ++s.counts.calls;
  s.counts.requests_lost += request_lost ? 1 : 0;
  s.counts.replies_lost += !request_lost && reply_lost ? 1 : 0;
  s.counts.doubled += !request_lost && doubled ? 1 : 0;
  s.counts.delayed += !request_lost && delayed ? 1 : 0;
  record.waiting = true;
  if (request_lost) {
    s.later(s.patience(record), id, &State::give_up);
  } else if (delayed) {
    s.later(delay, id, &State::send);
  } else if (reordered) {
    ++s.counts.reordered;
    s.held.push_back(id);
    s.later(kHoldMax, id, &State::release);
  } else {
    s.send(id);
  }
  for (const uint64_t before : overtaken) s.send(before);
  return id;
}

void ChaosChannel::cancel(uint64_t id) {
  state_->later(0, id, &State::cancel);
}

std::string ChaosChannel::peer() const {
  return state_->inner->peer();
}
const ChaosChannel::Counts& ChaosChannel::counts() const {
  return state_->counts;
}

}  // namespace flux
