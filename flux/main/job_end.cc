#include "flux/main/job_end.h"

#include <nlohmann/json.hpp>

#include "flux/main/drill_report.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr uint64_t kEndMax = 1 << 20;

std::string file_of(const std::string& output) {
  return join_path(output, "end.json");
}

Result<DrilledSummary> summary_of(const std::string& output) {
  return read_summary(join_path(output, "summary.json"));
}

std::string figures(const DrilledSummary& s) {
  Accounting accounting;
  accounting.expected = s.expected;
  accounting.applied = s.applied_once + s.doubled;
  accounting.lost = s.lost;
  accounting.doubled = s.doubled;
  accounting.skipped = s.skipped;
  std::string line = accounting_line(accounting);
  if (s.auc) line += fmt::format(" · test AUC {:.5f}", *s.auc);
  return line;
}

}  // namespace

Status forget_end(const std::string& output) {
  return remove_all(file_of(output));
}

JobEnd end_of(const Result<Summary>& result, const std::string& command) {
  if (!result.is_ok()) return {"failed", result.status().message(), "", command};
  return {result.value().state, "", result.value().stopped_by, command};
}

Status leave_end(const std::string& output, const JobEnd& end) {
  nlohmann::ordered_json json;
  json["state"] = end.state;
  json["error"] = end.error;
  json["stopped_by"] = end.stopped_by;
  json["command"] = end.command;
  return write_file_atomic(
      file_of(output),
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

Result<JobEnd> read_end(const std::string& output) {
  const std::string path = file_of(output);
  FLUX_ASSIGN_OR_RETURN(const std::string text, read_whole_file(path, kEndMax));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto word = [&](const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_string()
               ? json[name].get<std::string>()
               : "";
  };
  JobEnd end{word("state"), word("error"), word("stopped_by"), word("command")};
  if (end.state != "complete" && end.state != "stopped" && end.state != "failed")
    return error(Code::kCorrupt, "{}: does not say how a job ended", path);
  return end;
}

std::string end_phrase(const JobEnd& end) {
  if (end.state == "complete") return "is complete";
  if (end.state == "failed") return "failed: " + end.error;
  return "was stopped" + (end.stopped_by.empty() ? "" : " by " + end.stopped_by);
}

std::string end_text(const std::string& named, const std::string& output, const JobEnd& end) {
  std::string text = fmt::format("{} {}\n", named, end_phrase(end));
  const auto summary = summary_of(output);
  if (end.state != "failed" && summary.is_ok()) text += figures(summary.value()) + "\n";
  if (end.state != "complete" && !end.command.empty())
    text += fmt::format("to go on from its last checkpoint: {}\n", end.command);
  return text;
}

Status end_status(const std::string& output, const JobEnd& end) {
  if (end.state == "failed") return error(Code::kUnavailable, "the job failed: {}", end.error);
  const auto summary = summary_of(output);
  if (summary.is_ok() && !summary.value().exact())
    return error(Code::kUnavailable, "the job lost {} examples and counted {} twice",
                 summary.value().lost, summary.value().doubled);
  return summary.status().code() == Code::kNotFound ? Status::ok() : summary.status();
}

}  // namespace flux
