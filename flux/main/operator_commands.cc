// Commands of an operator about a job that runs elsewhere: drain, scale, move, rebalance.
#include <nlohmann/json.hpp>

#include "flux/main/commands.h"
#include "flux/main/job_target.h"

namespace flux {
namespace {

Status ask(const TargetArguments& target_arguments, const std::string& path,
           const nlohmann::json& body, const std::string& said) {
  FLUX_ASSIGN_OR_RETURN(const JobTarget target, find_target(target_arguments, true));
  FLUX_RETURN_IF_ERROR(ask_status(target).status());  // says it if the job does not run
  FLUX_RETURN_IF_ERROR(http_post_json(target.http, path, body.dump()).status());
  fmt::print("{}: {}; flux status {} shows how far it is\n", target.named, said, target.named);
  return Status::ok();
}

}  // namespace

int drain_command(const DrainArguments& arguments) {
  return report(
      ask(arguments.target, "/drain", {{"node", arguments.node}}, arguments.node + " is drained"));
}

int scale_command(const ScaleArguments& arguments) {
  if (arguments.workers < 0 && arguments.servers < 0)
    return report(invalid("scale: say how many: --workers N, --servers N or both"));
  nlohmann::json body;
  std::string said = "asked for";
  if (arguments.workers >= 0) {
    body["workers"] = arguments.workers;
    said += fmt::format(" {} worker(s)", arguments.workers);
  }
  if (arguments.servers >= 0) {
    body["servers"] = arguments.servers;
    said += fmt::format(" {} server(s)", arguments.servers);
  }
  return report(ask(arguments.target, "/scale", body, said));
}

int move_command(const MoveArguments& arguments) {
  return report(ask(arguments.target, "/move",
                    {{"shard", arguments.shard}, {"server", arguments.server}},
                    fmt::format("shard {} moves to {}", arguments.shard, arguments.server)));
}

int rebalance_command(const RebalanceArguments& arguments) {
  const auto ask = [&]() -> Status {
    FLUX_ASSIGN_OR_RETURN(const JobTarget target, find_target(arguments.target, true));
    FLUX_RETURN_IF_ERROR(ask_status(target).status());  // says it if the job does not run
    const nlohmann::json body = {{"dry_run", arguments.dry_run}};
    FLUX_ASSIGN_OR_RETURN(const std::string answer,
                          http_post_json(target.http, "/rebalance", body.dump()));
    const nlohmann::json json = nlohmann::json::parse(answer, nullptr, false);
    if (!json.is_object() || !json.contains("text") || !json["text"].is_string())
      return error(Code::kCorrupt, "{}: the answer does not say what moves", target.named);
    fmt::print("{}: {}\n", target.named, json["text"].get<std::string>());
    return Status::ok();
  };
  return report(ask());
}

}  // namespace flux
