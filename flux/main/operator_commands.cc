// Commands of an operator about a job that runs elsewhere: drain, scale, move, rebalance.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "flux/main/commands.h"
#include "flux/main/job_target.h"
#include "flux/main/operator_notes.h"

namespace flux {
namespace {

// What is to be known of a request, from what the job said before it.
using Notes =
    std::function<std::vector<std::string>(const JobTarget& target, const JobStatus& before)>;

Status ask(const TargetArguments& target_arguments, const std::string& path,
           const nlohmann::json& body, const std::string& said, const Notes& notes = {}) {
  FLUX_ASSIGN_OR_RETURN(const JobTarget target, find_target(target_arguments, true));
  FLUX_ASSIGN_OR_RETURN(const JobStatus before, ask_status(target));  // or: it does not run
  FLUX_RETURN_IF_ERROR(http_post_json(target.http, path, body.dump()).status());
  fmt::print("{}: {}; flux status {} shows how far it is\n", target.named, said, target.named);
  std::fflush(stdout);
  if (notes)
    for (const std::string& note : notes(target, before))
      if (!note.empty()) fmt::print(stderr, "{}\n", note);
  return Status::ok();
}

// Nobody starts roles, as far as can be seen from here.
bool started_by_hand(const JobTarget& target, const JobStatus& status) {
  if (target.record) return target.record->supervisor == 0;
  return status.wanted_workers < 0 && status.wanted_servers < 0;
}

}  // namespace

int drain_command(const DrainArguments& arguments) {
  const auto notes = [&](const JobTarget&, const JobStatus& before) -> std::vector<std::string> {
    const uint64_t stay = servers_without(before, arguments.node);
    if (stay == servers_without(before, "")) return {};  // a worker
    return {backup_note(before, stay)};
  };
  return report(ask(arguments.target, "/drain", {{"node", arguments.node}},
                    arguments.node + " is drained", notes));
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
  const auto notes = [&](const JobTarget& target, const JobStatus& before) {
    std::vector<std::string> out;
    if (arguments.servers >= 0)
      out.push_back(backup_note(before, static_cast<uint64_t>(arguments.servers)));
    if (started_by_hand(target, before))
      out.push_back(nobody_starts_note(before, arguments.workers, arguments.servers));
    return out;
  };
  return report(ask(arguments.target, "/scale", body, said, notes));
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
