// Runs tests/scripts/push_*.txt: what is fed to a session, and below each line what it did.
//
//   options pushes=2 bytes=100 timeout=10 max=40     (times in ns)
//   route 0@1.1 0@1.1 1@1.1                          server@term.n of each shard
//   start bytes=5 0.0/2 0.1/2                        block.batch/batches of each id, pass 0
//   answer 1 0:applied 1:partial[0.0/2] ...          answers to push 1
//   time 12                                          on_time
//   route ...                                        a new map, after the first: on_route
//   at 12                                            the clock, without on_time
//   show                                             counters
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

ShardAnswer parse_answer(const std::string& word) {
  ShardAnswer answer;
  const size_t colon = word.find(':');
  answer.shard = static_cast<ShardId>(std::stoul(word.substr(0, colon)));
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
    } else if (verb == "route" && !session_) {
      session_.emplace(options_, parse_route(&in));
    } else if (verb == "route") {
      session_->on_route(parse_route(&in), now_, &actions);
    } else if (verb == "start") {
      start(&in, &actions);
    } else if (verb == "answer") {
      PushSeq seq = 0;
      in >> seq;
      std::vector<ShardAnswer> answers;
      for (std::string word; in >> word;) answers.push_back(parse_answer(word));
      session_->on_answers(seq, answers, now_, &actions);
    } else if (verb == "time") {
      in >> now_;
      session_->on_time(now_, &actions);
    } else if (verb == "show") {
      return fmt::format(
          "> in flight {}, room {}, resends {}, duplicates {}{}\n", session_->in_flight(),
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
