// Runs tests/scripts/push_*.txt: what is fed to a session, and below each line what it did.
//
//   options pushes=2 bytes=100 timeout=10 max=40 retry=2 retry_max=8 patience=9    (times in ns)
//   route 0@1.1 0@1.1 1@1.1                          server@term.n of each shard
//   start bytes=5 0.0/2 0.1/2                        block.batch/batches of each id, pass 0
//   answer 1 0:applied 1:partial[0.0/2] ...          answers to push 1, sent under the epochs of
//   now answer 1 receipt=7 0@1.1:applied                 with a receipt; sent under the epoch 1.1
//   confirm 1 0/7 ok                                 server 0 confirms receipt 7 of push 1; or:
//   void lost 1 0 1@1.1                                   no answer to push 1 for these shards lost
//   1 0/7                                       no answer to confirm time 12 on_time route ... a
//   new map, after the first: on_route at 12                                            the clock,
//   without on_time show                                             counters
#include "flux/protocol/push_session.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/script_test.h"
#include "flux/base/text.h"

namespace flux {
namespace {

BatchId parse_id(const std::string& text) {
  unsigned block = 0, batch = 0, of = 0;
  EXPECT_EQ(std::sscanf(text.c_str(), "%u.%u/%u", &block, &batch, &of), 3) << text;
  return {{0, 0, 0, block}, static_cast<uint8_t>(batch), static_cast<uint8_t>(of)};
}
std::string show(const BatchId& id) {
  return fmt::format("{}.{}/{}", id.block.block, id.batch, id.batches_in_block);
}

ShardRoute parse_route(std::istringstream* in) {
  ShardRoute route;
  for (std::string word; *in >> word;) {
    unsigned server = 0, term = 0, n = 0;
    EXPECT_EQ(std::sscanf(word.c_str(), "%u@%u.%u", &server, &term, &n), 3) << word;
    route.server.push_back(server);
    route.epoch.push_back({term, n});
  }
  return route;
}

// "shard" or "shard@term.n": adds it to what was sent.
ShardId parse_sent(const std::string& word, const ShardRoute& route, PushAction* sent) {
  unsigned shard = 0, term = 0, n = 0;
  const int got = std::sscanf(word.c_str(), "%u@%u.%u", &shard, &term, &n);
  EXPECT_TRUE(got == 1 || got == 3) << word;
  const auto at = std::lower_bound(sent->shards.begin(), sent->shards.end(), shard);
  if (at != sent->shards.end() && *at == shard) return shard;
  const ShardEpoch epoch = got == 3 ? ShardEpoch{term, n} : route.epoch[shard];
  sent->epochs.insert(sent->epochs.begin() + (at - sent->shards.begin()), epoch);
  sent->shards.insert(at, shard);
  sent->server = route.server[shard];
  return shard;
}

// "server/receipt"
void parse_receipt(const std::string& word, PushAction* asked) {
  unsigned server = 0, receipt = 0;
  EXPECT_EQ(std::sscanf(word.c_str(), "%u/%u", &server, &receipt), 2) << word;
  asked->kind = PushAction::Kind::kConfirm;
  asked->server = server;
  asked->receipt = receipt;
}

ShardAnswer parse_answer(const std::string& word, const ShardRoute& route, PushAction* sent) {
  ShardAnswer answer;
  const size_t colon = word.find(':');
  answer.shard = parse_sent(word.substr(0, colon), route, sent);
  std::string name = word.substr(colon + 1);
  if (const size_t open = name.find('['); open != std::string::npos) {
    for (const auto& id : split(name.substr(open + 1, name.size() - open - 2), ','))
      answer.already.push_back(parse_id(id));
    name.resize(open);
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  for (uint32_t a = 0; a < kAnswerKinds; ++a) {
    answer.answer = static_cast<Answer>(a);
    if (name == answer_name(answer.answer)) return answer;
  }
  ADD_FAILURE() << "no answer is called " << name;
  return answer;
}

uint64_t option(const std::string& word) {
  return std::stoull(word.substr(word.find('=') + 1));
}

class Script {
 public:
  std::string run_line(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    std::vector<PushAction> actions;
    if (verb == "options") {
      for (std::string word; in >> word;) set_option(word);
    } else if (verb == "at") {
      in >> now_;
    } else if (verb == "route") {
      route_ = parse_route(&in);
      if (session_)
        session_->on_route(route_, now_, &actions);
      else
        session_.emplace(options_, route_);
    } else if (verb == "start") {
      start(&in, &actions);
    } else if (verb == "answer") {
      answer(&in, &actions);
    } else if (verb == "confirm" || verb == "lost") {
      confirm_or_lose(verb, &in, &actions);
    } else if (verb == "time") {
      in >> now_;
      session_->on_time(now_, &actions);
    } else if (verb == "show") {
      return fmt::format(
          "> in flight {}{}, room {}, resends {}, duplicates {}{}\n", session_->in_flight(),
          session_->unapplied() == session_->in_flight()
              ? ""
              : fmt::format(" ({} not applied)", session_->unapplied()),
          session_->has_room() ? "yes" : "no", session_->resends(), session_->duplicates(),
          session_->in_flight() > 0 ? fmt::format(", due {}", session_->next_time()) : "");
    } else {
      ADD_FAILURE() << "unknown line: " << line;
    }
    return print(actions);
  }

 private:
  void set_option(const std::string& word) {
    if (word.starts_with("pushes=")) options_.pushes_max = static_cast<uint32_t>(option(word));
    if (word.starts_with("bytes=")) options_.bytes_max = option(word);
    if (word.starts_with("timeout=")) options_.answer_timeout_ns = TimeNs(option(word));
    if (word.starts_with("max=")) options_.timeout_max_ns = TimeNs(option(word));
    if (word.starts_with("retry=")) options_.retry_ns = TimeNs(option(word));
    if (word.starts_with("retry_max=")) options_.retry_max_ns = TimeNs(option(word));
    if (word.starts_with("patience=")) options_.stale_patience_ns = TimeNs(option(word));
  }
  void answer(std::istringstream* in, std::vector<PushAction>* actions) {
    PushAction sent;
    *in >> sent.seq;
    uint64_t receipt = 0;
    std::vector<ShardAnswer> answers;
    for (std::string word; *in >> word;) {
      if (word.starts_with("receipt="))
        receipt = option(word);
      else
        answers.push_back(parse_answer(word, route_, &sent));
    }
    session_->on_answers(sent, answers, receipt, now_, actions);
  }
  void confirm_or_lose(const std::string& verb, std::istringstream* in,
                       std::vector<PushAction>* actions) {
    PushAction sent;
    *in >> sent.seq;
    std::string word, said;
    while (*in >> word) {
      if (word == "ok" || word == "void")
        said = word;
      else if (word.find('/') != std::string::npos)
        parse_receipt(word, &sent);
      else
        parse_sent(word, route_, &sent);
    }
    if (verb == "lost") return session_->on_lost(sent, now_, actions);
    EXPECT_FALSE(said.empty()) << "ok or void?";
    session_->on_confirm(sent, said == "ok", now_, actions);
  }
  void start(std::istringstream* in, std::vector<PushAction>* actions) {
    std::string word;
    *in >> word;
    const uint64_t bytes = option(word);
    std::vector<BatchId> ids;
    while (*in >> word) ids.push_back(parse_id(word));
    session_->start(ids, bytes, now_, actions);
  }
  static std::string print(const std::vector<PushAction>& actions) {
    std::string out;
    for (const PushAction& action : actions) {
      switch (action.kind) {
        case PushAction::Kind::kSend: {
          std::vector<std::string> shards, ids;
          for (size_t i = 0; i < action.shards.size(); ++i)
            shards.push_back(fmt::format("{}@{}.{}", action.shards[i], action.epochs[i].term,
                                         action.epochs[i].n));
          for (const BatchId& id : action.ids) ids.push_back(show(id));
          out += fmt::format("> send {} to server {}: shards {}: ids {}\n", action.seq,
                             action.server, join(shards, " "), join(ids, " "));
          break;
        }
        case PushAction::Kind::kConfirm:
          out += fmt::format("> confirm {} at server {}: receipt {}\n", action.seq, action.server,
                             action.receipt);
          break;
        case PushAction::Kind::kApplied:
          out += fmt::format("> applied {}\n", action.seq);
          break;
        case PushAction::Kind::kRelease:
          out += fmt::format("> release {}\n", action.seq);
          break;
        case PushAction::Kind::kRefresh:
          out += "> refresh\n";
          break;
        case PushAction::Kind::kStop:
          out += fmt::format("> stop: {}\n", action.reason);
          break;
      }
    }
    return out;
  }

  PushSessionOptions options_;
  ShardRoute route_;
  std::optional<PushSession> session_;
  TimeNs now_ = 0;
};

FLUX_SCRIPT_TEST(PushSessionScript, "push_", Script);

TEST(PushSession, MisuseIsABug) {
  PushSessionOptions options;
  options.pushes_max = 1;
  PushSession session(options, {{0}, {{1, 1}}});
  std::vector<PushAction> actions;
  EXPECT_DEATH(session.start({}, 1, 0, &actions), "sorted");
  EXPECT_DEATH(session.next_time(), "nothing in flight");
  session.start({{{0, 0, 0, 0}, 0, 1}}, 1, 0, &actions);
  EXPECT_DEATH(session.start({{{0, 0, 0, 0}, 0, 1}}, 1, 0, &actions), "without room");
  EXPECT_DEATH(session.on_route({{0, 0}, {{1, 1}, {1, 1}}}, 0, &actions), "never changes");
}

}  // namespace
}  // namespace flux
