// One HTTP request, bounded in time and size. Private to this library.
//
// A connection of its own each time: a few requests per second are asked, and nothing is shared.
// Blocking, for at most `within` (resolving a host's name has the system's own limits). Threads:
// any. Failure: kUnavailable says what did not work, without the address, which the caller adds.
#pragma once

#include <cstdint>
#include <string>

#include "flux/base/executor.h"
#include "flux/base/status.h"

namespace flux {

struct HttpPost {
  bool tls = false;
  std::string host;
  uint16_t port = 0;
  std::string ca_file;           // empty: the system's authorities
  std::string certificate, key;  // may be empty
  std::string path, body;        // JSON
  TimeNs within = kSecond;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

Result<HttpAnswer> http_post(const HttpPost& post);

// kInvalid names the file that cannot be used. Empty names are fine.
Status check_tls_files(const std::string& ca_file, const std::string& certificate,
                       const std::string& key);

}  // namespace flux
