#include "flux/election/endpoints.h"

#include <algorithm>
#include <charconv>

#include "flux/base/text.h"

namespace flux {
namespace {

constexpr uint16_t kEtcdPort = 2379;
constexpr size_t kEndpointsMax = 16;
constexpr size_t kHostMax = 253;
constexpr std::string_view kHow =
    "write http://host:2379 or https://host:2379, several with commas";

Status malformed(std::string_view text, std::string_view why) {
  return invalid("etcd endpoint '{}': {}; {}", text, why, kHow);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_host(std::string_view host, bool bracketed) {
  const auto good = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           (bracketed ? c == ':' || c == '%' : c == '-' || c == '_');
  };
  return !host.empty() && host.size() <= kHostMax && std::all_of(host.begin(), host.end(), good);
}

Result<uint16_t> parse_port(std::string_view text, std::string_view digits) {
  unsigned port = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, failed] = std::from_chars(digits.data(), last, port);
  if (failed != std::errc() || end != last || port < 1 || port > 65535)
    return malformed(text, "the port is not a number from 1 to 65535");
  return static_cast<uint16_t>(port);
}

Result<EtcdEndpoint> parse_one(std::string_view text) {
  EtcdEndpoint found;
  std::string_view rest = text;
  if (rest.empty()) return malformed(text, "it is empty");
  const size_t scheme = rest.find("://");
  if (scheme == std::string_view::npos) return malformed(text, "it does not begin with http://");
  found.tls = rest.substr(0, scheme) == "https";
  if (!found.tls && rest.substr(0, scheme) != "http")
    return malformed(text, fmt::format("'{}' is not spoken", rest.substr(0, scheme)));
  rest.remove_prefix(scheme + 3);
  if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
  if (rest.find('@') != std::string_view::npos)
    return malformed(text, "a user's name and password are not supported");
  if (rest.find_first_of("/?#") != std::string_view::npos)
    return malformed(text, "nothing may follow the port");
  const bool bracketed = rest.starts_with("[");
  const size_t end = bracketed ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (end == std::string_view::npos) return malformed(text, "a bracket is not closed");
  found.host = bracketed ? rest.substr(1, end - 1) : rest.substr(0, end);
  rest.remove_prefix(bracketed ? end + 1 : end);
  if (found.host.empty()) return malformed(text, "the host is missing");
  if (!is_host(found.host, bracketed)) return malformed(text, "the host is not a name or number");
  found.port = kEtcdPort;
  if (rest.empty()) return found;
  if (rest.front() != ':') return malformed(text, "after the bracket only a port may follow");
  if (!bracketed && rest.find(':', 1) != std::string_view::npos)
    return malformed(text, "an IPv6 host needs brackets, as in http://[::1]:2379");
  FLUX_ASSIGN_OR_RETURN(found.port, parse_port(text, rest.substr(1)));
  return found;
}

}  // namespace

std::string EtcdEndpoint::url() const {
  const bool six = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", six ? "[" : "", host, six ? "]" : "",
                     port);
}

Result<std::vector<EtcdEndpoint>> parse_endpoints(std::string_view text) {
  std::vector<EtcdEndpoint> all;
  for (const std::string& part : split(text, ',')) {
    FLUX_ASSIGN_OR_RETURN(EtcdEndpoint one, parse_one(trimmed(part)));
    if (std::find(all.begin(), all.end(), one) != all.end())
      return invalid("etcd endpoint '{}' is given twice", one.url());
    if (!all.empty() && all.front().tls != one.tls)
      return invalid("etcd endpoints '{}' and '{}': either all speak TLS (https://) or none",
                     all.front().url(), one.url());
    if (all.size() == kEndpointsMax)
      return invalid("more than {} etcd endpoints; a few of its members are enough", kEndpointsMax);
    all.push_back(std::move(one));
  }
  if (all.empty()) return malformed(text, "it is empty");
  return all;
}

}  // namespace flux
