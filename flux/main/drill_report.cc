#include "flux/main/drill_report.h"

#include <exception>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "flux/base/text.h"
#include "flux/main/timeline_svg.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

using Json = nlohmann::ordered_json;
constexpr uint64_t kSummaryMax = 64ULL << 20;

Json number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// What is timed of each fault: its key, and its name for people.
struct Column {
  const char* key;
  const char* name;
  std::optional<double> DrillFault::*value;
};
constexpr Column kColumns[] = {{"noticed", "noticed", &DrillFault::noticed_s},
                               {"back", "back", &DrillFault::back_s},
                               {"trains", "trains again", &DrillFault::trains_s},
                               {"new", "new examples", &DrillFault::new_s},
                               {"speed", "80 % of speed", &DrillFault::speed_s},
                               {"recovered", "recovered", &DrillFault::recovered_s}};

struct Kind {
  size_t faults = 0;
  std::map<std::string, std::vector<double>> times;  // by key of the column
  std::optional<Spread> spread(const Column& column) const {
    const auto found = times.find(column.key);
    if (found == times.end()) return std::nullopt;  // nobody saw it
    return spread_of(found->second);
  }
};

std::map<std::string, Kind> kinds_of(const DrillWatch& watch) {
  std::map<std::string, Kind> kinds;
  for (const DrillFault& fault : watch.faults()) {
    Kind& kind = kinds[fault.label];
    ++kind.faults;
    for (const Column& column : kColumns)
      if (fault.*column.value) kind.times[column.key].push_back(*(fault.*column.value));
  }
  return kinds;
}

Json fault_json(const DrillFault& fault) {
  Json j;
  j["number"] = fault.number;
  j["t"] = fault.t;
  j["kind"] = fault.label;
  j["what"] = fault.text;
  j["victims"] = Json::array();
  for (const RoleProcess& victim : fault.victims)
    j["victims"].push_back({{"name", victim.name}, {"pid", victim.pid}});
  j["healed_t"] = number(fault.healed);
  for (const Column& column : kColumns)
    j[std::string(column.key) + "_s"] = number(fault.*column.value);
  return j;
}

Json recovery_json(const DrillWatch& watch) {
  Json out = Json::object();
  for (const auto& [label, kind] : kinds_of(watch)) {
    Json j;
    j["faults"] = kind.faults;
    for (const Column& column : kColumns) {
      const std::optional<Spread> s = kind.spread(column);
      const auto value = [&](double Spread::*which) {
        return s ? Json((*s).*which) : Json(nullptr);
      };
      j[column.key] = {{"count", s ? s->count : 0},
                       {"p50", value(&Spread::p50)},
                       {"p99", value(&Spread::p99)},
                       {"max", value(&Spread::max)}};
    }
    out[label] = j;
  }
  return out;
}

// One list per sample: there may be many thousands.
Json samples_json(const DrillWatch& watch) {
  Json rows = Json::array();
  for (const DrillSample& s : watch.samples())
    rows.push_back({s.t, s.answered, s.state, s.applied, s.trained, s.workers, s.servers, s.term,
                    s.map_version, s.wait});
  return rows;
}

}  // namespace

Result<DrilledSummary> read_summary(const std::string& path) {
  FLUX_ASSIGN_OR_RETURN(const std::string text, read_whole_file(path, kSummaryMax));
  DrilledSummary out;
  try {
    const Json json = Json::parse(text);
    out.state = json.at("state").get<std::string>();
    out.expected = json.at("expected").get<uint64_t>();
    out.applied_once = json.at("applied_once").get<uint64_t>();
    out.lost = json.at("lost").get<uint64_t>();
    out.doubled = json.at("doubled").get<uint64_t>();
    out.skipped = json.at("skipped").get<uint64_t>();
    out.examples_per_s = json.at("examples_per_s").get<double>();
    if (!json.at("auc").is_null()) out.auc = json.at("auc").get<double>();
  } catch (const std::exception& failure) {  // of the JSON library
    return error(Code::kCorrupt, "{}: not a summary of a run: {}", path, failure.what());
  }
  out.text = text;
  return out;
}

Goodput goodput_of(const DrillReport& report) {
  Goodput out;
  out.reference = report.baseline ? report.baseline->examples_per_s : report.watch->rate_before();
  if (out.reference > 0) out.share = report.watch->rate_during() / out.reference;
  return out;
}

std::string no_fault_text(const NoFault& facts, const DrillWatch& watch) {
  if (!watch.left_out().empty())
    return fmt::format("no fault was made: {} left out, the last: {}", watch.left_out().size(),
                       watch.left_out().back());
  if (!facts.waited_for.empty())
    return fmt::format("no fault was made: the first was due, but {}", facts.waited_for);
  if (!facts.trained && facts.complete)
    return "no fault was made: the job had nothing left to train (it was complete before, or it "
           "is very short); --fresh trains it anew";
  if (!facts.trained) return "no fault was made: the job was not seen in training";
  return fmt::format(
      "no fault was made: training went on for {:.1f} s, and the first fault was to come after {}; "
      "give a shorter --every, or a longer job",
      facts.trained_s, facts.every);
}

std::string drill_line(const DrillReport& report) {
  std::string line = fmt::format("faults {} · ", with_commas(report.watch->faults().size()));
  if (report.summary) {
    const DrilledSummary& s = *report.summary;
    line +=
        fmt::format("samples {}/{} applied once · lost {} · double {}", with_commas(s.applied_once),
                    with_commas(s.expected), with_commas(s.lost), with_commas(s.doubled));
    if (s.skipped > 0) line += fmt::format(" · skipped {}", with_commas(s.skipped));
  } else {
    line += fmt::format("samples {}/{} so far; not counted: the job {}",
                        with_commas(report.watch->applied()), with_commas(report.examples_total),
                        report.end == "running" ? "goes on" : "has not come to its end");
  }
  line += fmt::format(" · worst stall {:.2f} s", report.watch->worst_stall_s());
  const Goodput goodput = goodput_of(report);
  if (goodput.share > 0) line += fmt::format(" · goodput {:.0f} %", 100 * goodput.share);
  if (!report.summary || !report.summary->auc) return line;
  if (report.baseline && report.baseline->auc)
    return line + fmt::format(" · AUC {:+.5f}", *report.summary->auc - *report.baseline->auc);
  return line + fmt::format(" · AUC {:.5f}", *report.summary->auc);
}

std::string recovery_table(const DrillReport& report) {
  if (report.watch->faults().empty()) return "";
  std::string out = fmt::format("{:<38} {:>5}  {:<14} {:>5} {:>7} {:>7} {:>7}\n", "fault", "count",
                                "seconds until", "seen", "p50", "p99", "max");
  const auto seconds = [](const std::optional<Spread>& spread, double Spread::*which) {
    return spread ? fmt::format("{:.2f}", (*spread).*which) : std::string("-");
  };
  for (const auto& [label, kind] : kinds_of(*report.watch)) {
    std::string head = fmt::format("{:<38} {:>5}", label, kind.faults);
    for (const Column& column : kColumns) {
      const std::optional<Spread> s = kind.spread(column);
      out += fmt::format("{:<44}  {:<14} {:>5} {:>7} {:>7} {:>7}\n", head, column.name,
                         s ? s->count : 0, seconds(s, &Spread::p50), seconds(s, &Spread::p99),
                         seconds(s, &Spread::max));
      head.clear();
    }
  }
  return out;
}

std::string drill_json(const DrillReport& report) {
  const DrillWatch& watch = *report.watch;
  const Goodput goodput = goodput_of(report);
  Json j;
  j["job"] = report.job;
  j["seed"] = report.seed;
  j["plan"] = report.plan;
  j["end"] = report.end;
  j["line"] = drill_line(report);
  j["faults_made"] = watch.faults().size();
  j["faults_left_out"] = watch.left_out().size();
  j["worst_stall_s"] = watch.worst_stall_s();
  j["stall_before_s"] = watch.stall_before_s();
  j["examples_per_s_before"] = watch.rate_before();
  j["examples_per_s_during"] = watch.rate_during();
  j["goodput"] = goodput.share > 0 ? Json(goodput.share) : Json(nullptr);
  j["workers_restarted"] = watch.workers_restarted();
  j["workers_restarted_unasked"] = watch.workers_restarted_unasked();
  j["summary"] = report.summary ? Json::parse(report.summary->text, nullptr, false) : Json(nullptr);
  j["recovery"] = recovery_json(watch);
  j["faults"] = Json::array();
  for (const DrillFault& fault : watch.faults()) j["faults"].push_back(fault_json(fault));
  j["events"] = Json::array();
  for (const DrillEvent& event : watch.events())
    j["events"].push_back({{"t", event.t}, {"fault", event.fault}, {"what", event.what}});
  j["sample_columns"] = {"t",       "answered", "state", "applied",     "trained",
                         "workers", "servers",  "term",  "map_version", "longest_wait"};
  j["samples"] = samples_json(watch);
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status write_drill(const DrillReport& report, const std::string& folder) {
  FLUX_RETURN_IF_ERROR(make_folders(folder));
  FLUX_RETURN_IF_ERROR(write_file_atomic(join_path(folder, "drill.json"), drill_json(report)));
  const Goodput goodput = goodput_of(report);
  const Timeline timeline{fmt::format("{}: {}", report.job, report.plan), drill_line(report),
                          goodput.reference, goodput.share};
  return write_file_atomic(join_path(folder, "timeline.svg"),
                           timeline_svg(timeline, report.watch->samples(), report.watch->faults()));
}

}  // namespace flux
