// Questions to the primaries of shards, asked again until all have answered.
#include <algorithm>
#include <utility>

#include "flux/coordinator/job_state.h"

namespace flux {
namespace {
constexpr TimeNs kAskAgainNs = 10 * kMillisecond;
constexpr TimeNs kAskAgainMaxNs = 500 * kMillisecond;
}  // namespace

std::vector<ShardId> JobMaster::State::all_shards() const {
  std::vector<ShardId> shards(plan_.all_shards);
  for (ShardId s = 0; s < shards.size(); ++s) shards[s] = s;
  return shards;
}

AdminCall JobMaster::State::make_call(const std::vector<ShardId>& shards) const {
  AdminCall call;
  call.incarnation = incarnation_;
  call.term = term_;
  call.shards = shards;
  for (const ShardId s : shards) call.epochs.push_back(places_->place(s).epoch);
  return call;
}

void JobMaster::State::ask_shards(std::string what, std::vector<ShardId> shards, AskVerb verb,
                                  Then then, bool again, uint64_t look) {
  auto ask = std::make_shared<Ask>();
  ask->what = std::move(what);
  ask->verb = std::move(verb);
  ask->then = std::move(then);
  ask->again = again;
  ask->look = look;
  ask->since = now();
  ask->until = now() + options_.restore_deadline_ns;
  ask->todo = {shards.begin(), shards.end()};
  asks_.push_back(ask);
  kick(ask);
}

void JobMaster::State::ask_all(std::string what, AskVerb verb, Then then, bool again,
                               uint64_t look) {
  ask_shards(std::move(what), all_shards(), std::move(verb), std::move(then), again, look);
}

void JobMaster::State::tell_all(std::string what, PlainVerb verb, Then then, uint64_t look) {
  ask_all(
      std::move(what),
      [verb = std::move(verb)](ServerAdminPort* port, AdminCall call, const AskDone& done) {
        verb(port, std::move(call), [done](const Status& status) { done(status, nullptr); });
      },
      std::move(then), true, look);
}

void JobMaster::State::kick(const std::shared_ptr<Ask>& ask) {
  if (ask->look != 0 && ask->look != looks_) return drop(ask);
  if (ask->over || ask->todo.empty() || now() < ask->due) return;
  std::map<ServerId, std::vector<ShardId>> by_server;
  for (const ShardId s : ask->todo)
    if (places_->served(s)) by_server[places_->place(s).primary].push_back(s);
  for (auto& [server, shards] : by_server) {
    for (const ShardId s : shards) ask->todo.erase(s);
    const uint64_t group = ++ask->last_group;
    ask->out[group] = {server, shards};
    ask->verb(admin(server), make_call(shards),
              guard([this, ask, group](const Status& status, const std::function<void()>& merge) {
                ask_answered(ask, group, status, merge);
              }));
    if (ask->over) return;
  }
}

void JobMaster::State::kick_asks() {
  const auto asks = asks_;  // an answer may come at once and begin others
  for (const auto& ask : asks) kick(ask);
}

void JobMaster::State::ask_answered(const std::shared_ptr<Ask>& ask, uint64_t group,
                                    const Status& status, const std::function<void()>& merge) {
  const auto at = ask->out.find(group);
  if (ask->over || at == ask->out.end()) return;  // its server is lost: asked of others by now
  const Ask::Group asked = std::move(at->second);
  ask->out.erase(at);
  if (status.is_ok()) {
    ask->tries = 0;
    if (merge) merge();
    if (ask->todo.empty() && ask->out.empty()) ask_over(ask, Status::ok());
    return;
  }
  const Status why = status.with_context(server_name(asked.server));
  if (status.code() == Code::kStale) check_term(why);
  const bool passes = status.code() == Code::kUnavailable || status.code() == Code::kStale;
  if (!passes) return ask_over(ask, why);
  // A server that does not know the job was started anew: that is not the end of the job.
  if (!ask->again) return ask_over(ask, Status(Code::kUnavailable, why.message()));
  ask->last = why;
  ask->todo.insert(asked.shards.begin(), asked.shards.end());
  // A primary that keeps refusing what it should serve has stepped down: it heard of an epoch that
  // a coordinator before this one did not live to make good.
  constexpr uint32_t kRefusalsMax = 4;
  if (ask->tries >= kRefusalsMax && !servers_[asked.server].gone) {
    for (const ShardId s : asked.shards)
      if (places_->served(s) && places_->place(s).primary == asked.server) places_->renew(s);
    pump_places();
  }
  constexpr uint32_t kDoublesMax = 10;
  const TimeNs wait = std::min(kAskAgainNs << std::min(ask->tries++, kDoublesMax), kAskAgainMaxNs);
  ask->due = now() + wait;
  executor_->post(wait, guard([this, ask] { kick(ask); }));
}

// Nobody waits for the answers any more.
void JobMaster::State::drop(const std::shared_ptr<Ask>& ask) {
  ask->over = true;
  std::erase(asks_, ask);
}

void JobMaster::State::ask_over(const std::shared_ptr<Ask>& ask, const Status& status) {
  if (ask->over) return;
  ask->over = true;
  std::erase(asks_, ask);
  const Then then = std::move(ask->then);
  ask->verb = nullptr;
  then(status);
}

void JobMaster::State::asks_lost(ServerId server) {
  const auto asks = asks_;
  for (const auto& ask : asks) {
    bool found = false;
    for (auto at = ask->out.begin(); at != ask->out.end();) {
      if (at->second.server != server) {
        ++at;
        continue;
      }
      ask->todo.insert(at->second.shards.begin(), at->second.shards.end());
      at = ask->out.erase(at);
      found = true;
    }
    if (found && !ask->again)
      ask_over(ask, error(Code::kUnavailable, "{}: {} is lost", ask->what, server_name(server)));
  }
}

std::string JobMaster::State::ask_waits(const Ask& ask) const {
  std::set<std::string> names;
  for (const auto& [group, asked] : ask.out) names.insert(server_name(asked.server));
  std::string text = "for " + ask.what;
  for (const std::string& name : names) text += (name == *names.begin() ? " by " : ", ") + name;
  if (!ask.todo.empty())
    text += fmt::format("{} whoever serves {} shard(s) ({})", names.empty() ? " by" : " and",
                        ask.todo.size(), places_->describe(*ask.todo.begin()));
  if (!ask.last.is_ok() && ask.tries > 1) text += "; " + ask.last.message();
  return text;
}

void JobMaster::State::check_asks() {
  const auto asks = asks_;
  for (const auto& ask : asks) {
    if (ask->over || now() < ask->until) continue;
    ask_over(ask, error(Code::kUnavailable, "waited {} s {}", (now() - ask->since) / kSecond,
                        ask_waits(*ask)));
  }
}

void JobMaster::State::ask_marked(const BlockId& section, bool any,
                                  std::function<void(Result<std::vector<uint32_t>>)> then) {
  const auto blocks = static_cast<uint32_t>(geometry_->blocks.size());
  using Masks = std::vector<uint32_t>;
  const auto sum = std::make_shared<Masks>(blocks, any ? 0 : ~0U);
  ask_all(
      "the marks of a section",
      [section, any, blocks, sum](ServerAdminPort* port, AdminCall call, const AskDone& done) {
        port->marked(std::move(call), section, blocks, any,
                     [any, blocks, sum, done](const Result<Masks>& answer) {
                       if (!answer.is_ok()) return done(answer.status(), nullptr);
                       const Masks& masks = answer.value();
                       if (masks.size() != blocks)
                         return done(error(Code::kCorrupt, "it reported {} blocks of {}",
                                           masks.size(), blocks),
                                     nullptr);
                       done(Status::ok(), [any, sum, masks] {
                         for (size_t b = 0; b < masks.size(); ++b)
                           (*sum)[b] = any ? (*sum)[b] | masks[b] : (*sum)[b] & masks[b];
                       });
                     });
      },
      [sum, then = std::move(then)](const Status& status) {
        if (!status.is_ok()) return then(status);
        then(std::move(*sum));
      });
}

}  // namespace flux
