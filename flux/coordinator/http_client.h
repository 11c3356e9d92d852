// A few requests to a coordinator's HTTP interface, for `flux status`, `logs` and `stop`.
//
// Blocking, with a deadline of a few seconds; follows no redirect. Threads: any.
// Failure: kUnavailable when nobody answers there; kInvalid with the server's own words when it
// refuses; kCorrupt for an answer that is none.
#pragma once

#include <string>

#include "flux/base/status.h"

namespace flux {

struct HttpTarget {
  std::string url;           // "http://127.0.0.1:40123"
  std::string token;         // shown if not empty
  std::string certificates;  // folder with ca.pem and, to show one, admin.pem and admin.key
};

Result<std::string> http_get(const HttpTarget& target, const std::string& path);
Result<std::string> http_post_json(const HttpTarget& target, const std::string& path,
                                   const std::string& body);

}  // namespace flux
