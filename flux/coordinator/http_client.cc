#include "flux/coordinator/http_client.h"

#include <filesystem>
#include <memory>
#include <utility>

#include <httplib.h>

namespace flux {
namespace {

constexpr time_t kSeconds = 5;
constexpr size_t kAnswerMax = 16 << 20;

Result<std::unique_ptr<httplib::Client>> connect(const HttpTarget& target) {
  if (!target.url.starts_with("http://") && !target.url.starts_with("https://"))
    return invalid("'{}' is no address such as http://127.0.0.1:8080", target.url);
  const bool tls = target.url.starts_with("https://");
  const std::string pem = target.certificates + "/admin.pem",
                    key = target.certificates + "/admin.key";
  const bool own = tls && !target.certificates.empty() && std::filesystem::exists(pem);
  auto client = own ? std::make_unique<httplib::Client>(target.url, pem, key)
                    : std::make_unique<httplib::Client>(target.url);
  if (!client->is_valid()) return invalid("'{}' is no address that can be asked", target.url);
  if (tls && !target.certificates.empty())
    client->set_ca_cert_path((target.certificates + "/ca.pem").c_str());
  client->set_connection_timeout(kSeconds);
  client->set_read_timeout(kSeconds);
  client->set_write_timeout(kSeconds);
  client->set_follow_location(false);
  if (!target.token.empty()) client->set_bearer_token_auth(target.token);
  return client;
}

Result<std::string> answer(const HttpTarget& target, httplib::Result result, std::string body) {
  if (!result)
    return error(Code::kUnavailable, "nobody answers at {} ({} failed)", target.url,
                 httplib::to_string(result.error()));
  if (result->status / 100 == 2) return body;
  while (!body.empty() && body.back() == '\n') body.pop_back();
  return invalid("{} refuses with {}: {}", target.url, result->status, body);
}

}  // namespace

Result<std::string> http_get(const HttpTarget& target, const std::string& path) {
  FLUX_ASSIGN_OR_RETURN(const auto client, connect(target));
  std::string body;
  auto result = client->Get(path.c_str(), [&](const char* data, size_t size) {
    body.append(data, size);
    return body.size() <= kAnswerMax;
  });
  return answer(target, std::move(result), std::move(body));
}

Result<std::string> http_post_json(const HttpTarget& target, const std::string& path,
                                   const std::string& body) {
  FLUX_ASSIGN_OR_RETURN(const auto client, connect(target));
  auto result = client->Post(path.c_str(), body, "application/json");
  std::string text = result ? result->body : "";
  return answer(target, std::move(result), std::move(text));
}

}  // namespace flux
