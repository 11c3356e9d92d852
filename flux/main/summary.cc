#include "flux/main/summary.h"

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "flux/base/text.h"
#include "flux/main/metric_json.h"

namespace flux {

namespace {

using Json = nlohmann::ordered_json;

uint64_t applied_once(const Accounting& a) {
  return a.applied - std::min(a.applied, a.doubled);
}

Json accounting_json(const Accounting& a) {
  return {{"expected", a.expected},
          {"applied_once", applied_once(a)},
          {"lost", a.lost},
          {"doubled", a.doubled},
          {"skipped", a.skipped}};
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json warnings_json(const std::vector<TrainingWarning>& warnings) {
  Json out = Json::array();
  for (const TrainingWarning& w : warnings)
    out.push_back({{"id", w.id},
                   {"phase", w.phase},
                   {"part", w.part},
                   {"examples", w.examples},
                   {"active", w.active},
                   {"text", w.text}});
  return out;
}

Json pushes_json(const PushSummary& p) {
  return {{"count", p.times.count()},
          {"p50_ms", p.times.quantile_ms(0.5)},
          {"p99_ms", p.times.quantile_ms(0.99)},
          {"max_ms", p.times.max_ms()},
          {"duplicates", p.duplicates},
          {"refused", p.refused},
          {"age_count", p.ages.count()},
          {"age_p50", static_cast<uint64_t>(p.ages.quantile(0.5))},
          {"age_p99", static_cast<uint64_t>(p.ages.quantile(0.99))},
          {"age_max", p.ages.max()}};
}

}  // namespace

std::string summary_json(const Summary& s) {
  nlohmann::ordered_json j;
  j["job"] = s.job;
  j["state"] = s.state;
  j["examples"] = s.examples;
  j["examples_per_s"] = s.examples_per_s;
  j["wall_s"] = s.wall_s;
  j["train_s"] = s.train_s;
  j["auc"] = number_or_null(s.auc);
  j["logloss"] = number_or_null(s.logloss);
  j["train_auc"] = number_or_null(s.train_auc);
  j["train_logloss"] = number_or_null(s.train_logloss);
  j["train"] = s.told.empty() ? metrics_json(s.progressive) : Json::parse(s.told);
  j.update(accounting_json(s.accounting));
  j["phases"] = Json::array();
  for (const PhaseSummary& phase : s.phases) {
    Json one = {{"name", phase.name}};
    one.update(accounting_json(phase.accounting));
    j["phases"].push_back(std::move(one));
  }
  j["rows"] = s.rows;
  j["peak_rss_bytes"] = s.peak_rss_bytes;
  j["resumed_from"] = s.resumed_from.empty() ? nlohmann::ordered_json(nullptr)
                                             : nlohmann::ordered_json(s.resumed_from);
  j["stopped_by"] = s.stopped_by.empty() ? Json(nullptr) : Json(s.stopped_by);
  j["untrained"] = s.untrained;
  j["passes_left"] = s.passes_left;
  j["best"] = s.best.empty() ? Json(nullptr) : Json(s.best);
  j["precision"] = s.precision;
  j["isa"] = s.isa;
  j["threads"] = s.threads;
  j["mode"] = s.mode;
  j["wire"] = s.wire;
  j["pushes"] = pushes_json(s.pushes);
  j["roles"] = nlohmann::ordered_json::array();
  for (const RoleCost& role : s.roles)
    j["roles"].push_back({{"role", role.role},
                          {"name", role.name},
                          {"cpu_s", role.cpu_s},
                          {"peak_rss_bytes", role.peak_rss_bytes},
                          {"bytes_in", role.bytes_in},
                          {"bytes_out", role.bytes_out}});
  j["quality"] = s.quality;
  j["warnings"] = warnings_json(s.warnings);
  j["test"] = s.test ? metrics_json(*s.test) : nlohmann::ordered_json(nullptr);
  j["model_hash"] = fmt::format("{:016x}", s.model_hash);
  return j.dump(2) + "\n";
}

std::string accounting_line(const Accounting& a) {
  return fmt::format("examples {}/{} applied once · skipped {} · lost {} · doubled {}",
                     with_commas(applied_once(a)), with_commas(a.expected), with_commas(a.skipped),
                     with_commas(a.lost), with_commas(a.doubled));
}

std::string accounting_line(const Summary& s) {
  std::string line = accounting_line(s.accounting);
  if (const MetricValues* test = s.test ? s.test->whole() : nullptr; s.auc) {
    line += fmt::format(" · test AUC {:.5f}", *s.auc);
  } else if (test != nullptr && test->accuracy) {
    line += fmt::format(" · test accuracy {:.5f}", *test->accuracy);
  } else if (test != nullptr && test->rmse && !test->log_loss) {
    line += fmt::format(" · test RMSE {:.5f}", *test->rmse);
  }
  if (s.examples > 0)
    line += fmt::format(" · {} examples/s", with_commas(static_cast<uint64_t>(s.examples_per_s)));
  return line;
}

std::string left_line(const Summary& s) {
  std::vector<std::string> parts;
  if (s.untrained > 0)
    parts.push_back(counted(s.untrained, "example") + " of the open pass were left");
  if (s.passes_left > 0)
    parts.push_back(fmt::format("{} pass{} not begun", with_commas(s.passes_left),
                                s.passes_left == 1 ? " was" : "es were"));
  return parts.empty() ? "nothing was left" : join(parts, ", ");
}

uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

double process_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace flux
