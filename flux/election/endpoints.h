// Endpoints of etcd as a person gives them: "http://a:2379,https://[::1]:2379". Without a port it
// is etcd's own, 2379. Pure; failure: kInvalid quotes the part that is wrong and says how it is
// written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"

namespace flux {

struct EtcdEndpoint {
  bool tls = false;
  std::string host;  // a name or number, without brackets
  uint16_t port = 0;

  std::string url() const;  // "https://[::1]:2379"
  bool operator==(const EtcdEndpoint&) const = default;
};

// At least one, at most 16, all different, all with TLS or none.
Result<std::vector<EtcdEndpoint>> parse_endpoints(std::string_view text);

}  // namespace flux
