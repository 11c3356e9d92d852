#include "flux/election/etcd_client.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <utility>

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include "flux/base/text.h"
#include "flux/election/http_post.h"

namespace flux {
namespace {

using nlohmann::json;

constexpr size_t kQuoteMax = 200;  // of a strange answer, in messages

std::string to_base64(const std::string& text) {
  std::string out(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

bool from_base64(const std::string& text, std::string* out) {
  out->assign(text.size() / 4 * 3 + 1, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out->data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  const int padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  if (size < padding) return false;
  out->resize(static_cast<size_t>(size - padding));
  return true;
}

// etcd writes 64-bit numbers as text and leaves out zeros. False: there is something else.
bool read_number(const json& object, const char* name, int64_t* out) {
  *out = 0;
  const auto it = object.find(name);
  if (it == object.end()) return true;
  if (it->is_number_unsigned() || it->is_number_integer()) {
    *out = it->get<int64_t>();
    return true;
  }
  if (!it->is_string()) return false;
  const auto& text = it->get_ref<const std::string&>();
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return failed == std::errc() && end == text.data() + text.size() && !text.empty();
}

// An id of 64 bits without a sign, which etcd writes as decimal text.
std::string text_in(const json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

bool read_pair(const json& kv, EtcdPair* pair) {
  return kv.is_object() && from_base64(text_in(kv, "key"), &pair->key) &&
         from_base64(text_in(kv, "value"), &pair->value) &&
         read_number(kv, "create_revision", &pair->create_revision) &&
         read_number(kv, "lease", &pair->lease) && pair->create_revision > 0;
}

json compare_json(const EtcdCompare& compare) {
  json out = {{"key", to_base64(compare.key)},
              {"target", "CREATE"},
              {"result", "EQUAL"},
              {"create_revision", std::to_string(compare.create_revision)}};
  if (!compare.range_end.empty()) out["range_end"] = to_base64(compare.range_end);
  return out;
}

json step_json(const EtcdStep& step) {
  json body = {{"key", to_base64(step.key)}};
  if (!step.range_end.empty()) body["range_end"] = to_base64(step.range_end);
  switch (step.kind) {
    case EtcdStep::Kind::kGet:
      return {{"request_range", std::move(body)}};
    case EtcdStep::Kind::kLast:
      body["sort_order"] = "DESCEND";
      body["sort_target"] = "KEY";
      body["limit"] = "1";
      return {{"request_range", std::move(body)}};
    case EtcdStep::Kind::kPut:
      body["value"] = to_base64(step.value);
      body["lease"] = std::to_string(step.lease);
      return {{"request_put", std::move(body)}};
    case EtcdStep::Kind::kRemove:
      break;
  }
  return {{"request_delete_range", std::move(body)}};
}

json steps_json(const std::vector<EtcdStep>& steps) {
  json all = json::array();
  for (const EtcdStep& step : steps) all.push_back(step_json(step));
  return all;
}

std::string quoted(std::string text) {
  const bool longer = text.size() > kQuoteMax;
  if (longer) text.resize(kQuoteMax);
  for (char& c : text)
    if (c < ' ' || c > '~') c = ' ';
  while (text.ends_with(' ')) text.pop_back();
  return longer ? text + "..." : text;
}

// An answer that says no. gRPC's codes: 3 bad argument, 5 not found, 7 and 16 no permission.
Status refusal(int http, const std::string& body) {
  const json answer = json::parse(body, nullptr, false);
  int64_t code = 0;
  std::string message;
  if (answer.is_object()) {
    const auto inner = answer.find("error");  // streams wrap it once more
    const json& at = inner != answer.end() && inner->is_object() ? *inner : answer;
    message = text_in(at, "message");
    if (!read_number(at, at.contains("grpc_code") ? "grpc_code" : "code", &code)) code = 0;
  }
  if (message.empty())
    return error(Code::kUnavailable, "answers HTTP {}, not as etcd v3 does: '{}'", http,
                 quoted(body));
  if (code == 5) return error(Code::kNotFound, "etcd says: {}", quoted(message));
  if (code == 3 || code == 7 || code == 16) return invalid("etcd refuses: {}", quoted(message));
  return error(Code::kUnavailable, "etcd fails: {} (HTTP {})", quoted(message), http);
}

Status strange(const std::string& what) {
  return error(Code::kUnavailable, "does not answer as etcd v3 does: {}", what);
}

Result<EtcdAnswer> read_txn(const json& answer, size_t then, size_t otherwise) {
  EtcdAnswer out;
  const auto succeeded = answer.find("succeeded");
  out.succeeded = succeeded != answer.end() && *succeeded == true;
  if (!read_number(answer["header"], "revision", &out.revision) || out.revision <= 0)
    return strange("no revision");
  const auto responses = answer.find("responses");
  const size_t wanted = out.succeeded ? then : otherwise;
  if (responses != answer.end() && !responses->is_array()) return strange("no list of results");
  if ((responses == answer.end() ? 0 : responses->size()) != wanted)
    return strange("another number of results than steps");
  for (size_t i = 0; i < wanted; ++i) {
    auto& found = out.found.emplace_back();
    const json& one = (*responses)[i];
    if (!one.is_object()) return strange("a result that is none");
    const auto range = one.find("response_range");
    if (range == one.end()) continue;
    if (!range->is_object()) return strange("a result that is none");
    if (!range->contains("kvs")) continue;
    for (const json& kv : (*range)["kvs"])
      if (!read_pair(kv, &found.emplace_back())) return strange("a key that cannot be read");
  }
  return out;
}

}  // namespace

struct EtcdClient::Impl {
  explicit Impl(EtcdOptions given) : options(std::move(given)) {}

  // The answer's object, checked as far as all answers are alike.
  Result<json> ask(size_t i, const std::string& path, const std::string& body, TimeNs within) {
    HttpPost post;
    post.tls = options.endpoints[i].tls;
    post.host = options.endpoints[i].host;
    post.port = options.endpoints[i].port;
    post.ca_file = options.ca_file;
    post.certificate = options.certificate;
    post.key = options.key;
    post.path = path;
    post.body = body;
    post.within = within;
    FLUX_ASSIGN_OR_RETURN(const HttpAnswer answer, http_post(post));
    if (answer.status != 200) return refusal(answer.status, answer.body);
    json parsed = json::parse(answer.body, nullptr, false);
    if (parsed.is_object() && parsed.contains("error")) return refusal(200, answer.body);
    if (parsed.is_object() && parsed.contains("result")) parsed = json(parsed["result"]);
    if (!parsed.is_object()) return strange("'" + quoted(answer.body) + "'");
    const auto header = parsed.find("header");
    const std::string cluster =
        header != parsed.end() && header->is_object() ? text_in(*header, "cluster_id") : "";
    if (cluster.empty()) return strange("no cluster in '" + quoted(answer.body) + "'");
    FLUX_RETURN_IF_ERROR(check_cluster(i, cluster));
    return parsed;
  }

  Status check_cluster(size_t i, const std::string& cluster) {
    const std::lock_guard lock(mutex);
    if (cluster_.empty()) {
      cluster_ = cluster;
      cluster_of_ = options.endpoints[i].url();
    }
    if (cluster == cluster_) return Status::ok();
    return error(Code::kUnavailable,
                 "is a member of another etcd cluster ({}) than {} ({}); give the endpoints of one",
                 cluster, cluster_of_, cluster_);
  }

  // `read` makes a T of the object, or says what is missing.
  template <typename T, typename Read>
  Result<T> call(const std::string& path, const json& body, const EtcdLimit& limit, Read read) {
    const std::string text = body.dump();
    const TimeNs end = steady_now_ns() + limit.total;
    const size_t count = options.endpoints.size();
    const size_t first = preferred.load();
    std::vector<std::string> problems;
    for (size_t k = 0; k < count; ++k) {
      const size_t i = (first + k) % count;
      const TimeNs left = end - steady_now_ns();
      if (left <= 0) break;
      Status problem;
      if (auto answer = ask(i, path, text, std::min(left, limit.attempt)); answer.is_ok()) {
        Result<T> got = read(answer.value());
        if (got.is_ok()) {
          preferred = i;
          return got;
        }
        problem = got.status();
      } else {
        problem = answer.status();
      }
      if (problem.code() != Code::kUnavailable)
        return problem.with_context(options.endpoints[i].url());
      problems.push_back(options.endpoints[i].url() + " " + problem.message());
    }
    preferred = (first + std::max<size_t>(problems.size(), 1)) % count;
    return error(Code::kUnavailable, "no etcd endpoint serves: {}", join(problems, "; "));
  }

  const EtcdOptions options;
  std::atomic<size_t> preferred{0};
  std::mutex mutex;  // guards what follows
  std::string cluster_, cluster_of_;
};

EtcdClient::EtcdClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EtcdClient::~EtcdClient() = default;

Result<std::unique_ptr<EtcdClient>> EtcdClient::make(const EtcdOptions& options) {
  if (options.endpoints.empty()) return invalid("no etcd endpoint is given");
  if (options.certificate.empty() != options.key.empty())
    return invalid("a certificate for etcd needs its key, and the other way round");
  if (options.endpoints.front().tls)
    FLUX_RETURN_IF_ERROR(check_tls_files(options.ca_file, options.certificate, options.key));
  else if (!options.ca_file.empty() || !options.certificate.empty())
    return invalid("{}: certificates are of no use without TLS; write https://",
                   options.endpoints.front().url());
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::make_unique<Impl>(options)));
}

std::string EtcdClient::urls() const {
  std::vector<std::string> all;
  for (const EtcdEndpoint& endpoint : impl_->options.endpoints) all.push_back(endpoint.url());
  return join(all, ", ");
}

Result<EtcdLease> EtcdClient::grant(int64_t ttl_s, const EtcdLimit& limit) {
  const auto read = [](const json& answer) -> Result<EtcdLease> {
    EtcdLease lease;
    if (!read_number(answer, "ID", &lease.id) || !read_number(answer, "TTL", &lease.ttl_s) ||
        lease.id == 0 || lease.ttl_s <= 0)
      return strange("a lease without number or time");
    return lease;
  };
  return impl_->call<EtcdLease>("/v3/lease/grant", {{"TTL", std::to_string(ttl_s)}}, limit, read);
}

Result<int64_t> EtcdClient::keep_alive(int64_t lease, const EtcdLimit& limit) {
  const auto read = [lease](const json& answer) -> Result<int64_t> {
    int64_t id = 0, ttl_s = 0;
    if (!read_number(answer, "ID", &id) || !read_number(answer, "TTL", &ttl_s) || id != lease)
      return strange("not the lease that was to be kept alive");
    if (ttl_s <= 0) return error(Code::kNotFound, "the lease has run out");
    return ttl_s;
  };
  return impl_->call<int64_t>("/v3/lease/keepalive", {{"ID", std::to_string(lease)}}, limit, read);
}

Status EtcdClient::revoke(int64_t lease, const EtcdLimit& limit) {
  const auto read = [](const json&) -> Result<bool> { return true; };
  return impl_->call<bool>("/v3/lease/revoke", {{"ID", std::to_string(lease)}}, limit, read)
      .status();
}

Result<EtcdAnswer> EtcdClient::txn(const std::vector<EtcdCompare>& compares,
                                   const std::vector<EtcdStep>& then,
                                   const std::vector<EtcdStep>& otherwise, const EtcdLimit& limit) {
  json body = {{"success", steps_json(then)}, {"failure", steps_json(otherwise)}};
  for (const EtcdCompare& compare : compares) body["compare"].push_back(compare_json(compare));
  const auto read = [&](const json& answer) -> Result<EtcdAnswer> {
    auto out = read_txn(answer, then.size(), otherwise.size());
    if (out.is_ok() && compares.empty() && !out.value().succeeded)
      return strange("it failed where there was nothing to fail");
    return out;
  };
  return impl_->call<EtcdAnswer>("/v3/kv/txn", body, limit, read);
}

}  // namespace flux
