#include "flux/coordinator/operator_request.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "flux/base/text.h"

namespace flux {
namespace {

using Json = nlohmann::json;
constexpr int64_t kCountMax = 1 << 20;

Status check_fields(const Json& body, const std::vector<std::string>& known) {
  if (!body.is_object()) return invalid("the body must be a JSON object");
  for (const auto& [name, value] : body.items())
    if (std::find(known.begin(), known.end(), name) == known.end())
      return invalid("unknown field \"{}\"; this takes: {}", name, join(known, ", "));
  return Status::ok();
}

Result<std::string> text_of(const Json& body, const char* name) {
  const auto at = body.find(name);
  if (at == body.end() || !at->is_string() || at->get<std::string>().empty())
    return invalid("\"{}\" must be a name", name);
  return at->get<std::string>();
}

Result<int64_t> count_of(const Json& body, const char* name) {
  const auto at = body.find(name);
  if (at == body.end()) return int64_t{-1};
  if (!at->is_number_integer() || at->get<int64_t>() < 0 || at->get<int64_t>() > kCountMax)
    return invalid("\"{}\" must be a whole number", name);
  return at->get<int64_t>();
}

}  // namespace

Result<std::string> run_operator_request(std::string_view path, std::string_view body,
                                         const OperatorHooks& hooks) {
  const auto accepted = [](const Status& status) -> Result<std::string> {
    if (!status.is_ok()) return status;
    return std::string();
  };
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) return invalid("the body is not JSON");
  if (path == "/drain") {
    FLUX_RETURN_IF_ERROR(check_fields(json, {"node"}));
    FLUX_ASSIGN_OR_RETURN(const std::string node, text_of(json, "node"));
    return accepted(hooks.drain ? hooks.drain(node) : invalid("nothing can be drained here"));
  }
  if (path == "/scale") {
    FLUX_RETURN_IF_ERROR(check_fields(json, {"workers", "servers"}));
    FLUX_ASSIGN_OR_RETURN(const int64_t workers, count_of(json, "workers"));
    FLUX_ASSIGN_OR_RETURN(const int64_t servers, count_of(json, "servers"));
    return accepted(hooks.scale ? hooks.scale(workers, servers)
                                : invalid("this job cannot be scaled"));
  }
  if (path == "/move") {
    FLUX_RETURN_IF_ERROR(check_fields(json, {"shard", "server"}));
    FLUX_ASSIGN_OR_RETURN(const int64_t shard, count_of(json, "shard"));
    if (shard < 0) return invalid("\"shard\" must be a whole number");
    FLUX_ASSIGN_OR_RETURN(const std::string server, text_of(json, "server"));
    return accepted(hooks.move ? hooks.move(static_cast<uint32_t>(shard), server)
                               : invalid("nothing can be moved here"));
  }
  if (path == "/rebalance") {
    FLUX_RETURN_IF_ERROR(check_fields(json, {"dry_run"}));
    const auto dry = json.find("dry_run");
    if (dry != json.end() && !dry->is_boolean())
      return invalid("\"dry_run\" must be true or false");
    if (!hooks.rebalance) return invalid("nothing can be moved here");
    return hooks.rebalance(dry != json.end() && dry->get<bool>());
  }
  return error(Code::kNotFound, "there is no {}", path);
}

std::string operator_answer(const std::string& text) {
  nlohmann::ordered_json answer{{"accepted", true}};
  if (!text.empty()) answer["text"] = text;
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int http_status_of(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return 202;
    case Code::kInvalid:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kCancelled:
    case Code::kStale:
      return 409;
    default:
      return 503;
  }
}

}  // namespace flux
