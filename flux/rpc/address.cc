#include "flux/rpc/address.h"

#include <charconv>

#include <sys/un.h>

namespace flux {
namespace {

constexpr size_t kUnixPathMax = sizeof(sockaddr_un{}.sun_path) - 1;
constexpr size_t kHostMax = 253;

Status malformed(std::string_view text, std::string_view why) {
  return invalid("address '{}': {}; write host:port, tcp:host:port or unix:/path", text, why);
}

Result<Address> parse_unix(std::string_view text, std::string_view path) {
  if (path.empty()) return malformed(text, "the path is missing");
  if (path.find('\0') != std::string_view::npos) return malformed(text, "a zero byte in the path");
  if (path.size() > kUnixPathMax)
    return invalid(
        "address '{}': the path has {} bytes, a Unix socket at most {}; choose a shorter"
        " folder",
        text, path.size(), kUnixPathMax);
  return Address{true, std::string(path), 0};
}

}  // namespace

std::string Address::text() const {
  if (local) return "unix:" + host;
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("tcp:[{}]:{}", host, port) : fmt::format("tcp:{}:{}", host, port);
}

bool Address::is_loopback() const {
  if (local || host == "localhost" || host == "::1") return true;
  if (host.rfind("127.", 0) != 0) return false;
  return host.find_first_not_of("0123456789.") == std::string::npos;
}

Result<Address> parse_address(std::string_view text) {
  std::string_view rest = text;
  if (rest.substr(0, 5) == "unix:") return parse_unix(text, rest.substr(5));
  if (rest.substr(0, 4) == "tcp:") rest = rest.substr(4);
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return malformed(text, "there is no port");
  std::string_view host = rest.substr(0, colon);
  const std::string_view digits = rest.substr(colon + 1);
  unsigned port = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failed != std::errc() || end != digits.data() + digits.size() || port > 65535)
    return malformed(text, "the port is not a number from 0 to 65535");
  if (!host.empty() && host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') return malformed(text, "a bracket is not closed");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return malformed(text, "an IPv6 host needs brackets, as in [::1]:7000");
  }
  if (host.empty()) return malformed(text, "the host is missing");
  if (host.size() > kHostMax ||
      host.find_first_of(std::string_view("[]/ \t\n\0", 7)) != std::string_view::npos)
    return malformed(text, "the host is not a name or number");
  return Address{false, std::string(host), static_cast<uint16_t>(port)};
}

}  // namespace flux
