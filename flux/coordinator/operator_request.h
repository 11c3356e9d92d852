// Operators' requests as they come over HTTP: a path and a JSON body, checked and handed on.
//
//   /drain  {"node": "server-1"}                 a server or a worker, by name
//   /scale  {"workers": 4, "servers": 2}         one of them may be left out
//   /move   {"shard": 12, "server": "server-0"}
//   /rebalance  {"dry_run": true}                or {}; answered with what moves
//
// A field that is unknown or of another type is refused, never ignored. Threads: any; the hooks are
// called on the caller's. Failure: kInvalid says what is wrong with the body, else what the job
// says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "flux/base/status.h"

namespace flux {

struct OperatorHooks {
  std::function<Status(const std::string& node)> drain;
  std::function<Status(int64_t workers, int64_t servers)> scale;  // -1: no change
  std::function<Status(uint32_t shard, const std::string& server)> move;
  std::function<Result<std::string>(bool dry_run)> rebalance;
};

// What there is to say about what was done, for people; may be empty.
Result<std::string> run_operator_request(std::string_view path, std::string_view body,
                                         const OperatorHooks& hooks);
// The answer to one that was carried out: {"accepted": true, "text": ...}.
std::string operator_answer(const std::string& text);
// Of the answer to such a request.
int http_status_of(const Status& status);

}  // namespace flux
