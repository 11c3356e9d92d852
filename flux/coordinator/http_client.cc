#include "flux/coordinator/http_client.h"

#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include <httplib.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace flux {
namespace {

constexpr time_t kSeconds = 5;
constexpr size_t kAnswerMax = 16 << 20;

// Certificates of a job name roles, not hosts: the peer must show the coordinator's.
bool is_coordinator(X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  bool found = false;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                                static_cast<size_t>(ASN1_STRING_length(uri)));
    found = found || text == "flux:coordinator";
  }
  GENERAL_NAMES_free(names);
  return found;
}

int check_peer(int good, X509_STORE_CTX* store) {
  if (good != 1 || X509_STORE_CTX_get_error_depth(store) != 0) return good;
  return is_coordinator(X509_STORE_CTX_get_current_cert(store)) ? 1 : 0;
}

Status prepare_tls(httplib::Client* client, const std::string& folder) {
  if (folder.empty())
    return invalid("this coordinator speaks TLS; give the folder of its certificates: --certs DIR");
  SSL_CTX* context = client->ssl_context();
  const std::string authority = folder + "/ca.pem";
  if (SSL_CTX_load_verify_locations(context, authority.c_str(), nullptr) != 1)
    return invalid("{}: cannot be read or is no good for TLS", authority);
  // httplib would look for a host's name in the certificate; ours is checked while connecting.
  client->enable_server_certificate_verification(false);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, check_peer);
  return Status::ok();
}

Result<std::unique_ptr<httplib::Client>> connect(const HttpTarget& target) {
  if (!target.url.starts_with("http://") && !target.url.starts_with("https://"))
    return invalid("'{}' is no address such as http://127.0.0.1:8080", target.url);
  const bool tls = target.url.starts_with("https://");
  const std::string pem = target.certificates + "/admin.pem";
  const std::string key = target.certificates + "/admin.key";
  const bool own = tls && !target.certificates.empty() && std::filesystem::exists(pem);
  auto client = own ? std::make_unique<httplib::Client>(target.url, pem, key)
                    : std::make_unique<httplib::Client>(target.url);
  if (!client->is_valid()) return invalid("'{}' is no address that can be asked", target.url);
  if (tls) FLUX_RETURN_IF_ERROR(prepare_tls(client.get(), target.certificates));
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
