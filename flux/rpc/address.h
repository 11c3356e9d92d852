// Address: where a listener listens and a channel connects: "tcp:host:port", "host:port",
// "[::1]:7000" or "unix:/path". A value; parse_address() fails with kInvalid and says how it is
// written. Pure; safe everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "flux/base/status.h"

namespace flux {

struct Address {
  bool local = false;  // a Unix socket
  std::string host;    // a name or number; for a Unix socket its path
  uint16_t port = 0;

  // "tcp:10.0.0.2:7000", "tcp:[::1]:7000", "unix:/run/flux.sock"; parse_address() reads it.
  std::string text() const;
  // Nobody outside this host can reach it: a Unix socket, 127.x.x.x, ::1 or "localhost".
  bool is_loopback() const;
};

Result<Address> parse_address(std::string_view text);

}  // namespace flux
