#include "flux/main/run_record.h"

#include "flux/base/text.h"
#include "flux/main/event_lines.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

using Scalars = std::vector<std::pair<std::string, double>>;

// "held-out/auc" for the only head, "held-out/buy/slot=3/auc" for others.
std::string tag(const std::string& group, const MetricKey& key, const std::string& metric) {
  const std::string name = to_string(key);
  return group + "/" + (name.empty() ? "" : name + "/") + metric;
}

void add_values(const std::string& group, const MetricReport::Row& row, Scalars* out) {
  for (const MetricField& field : metric_fields())
    if (row.values.*field.value)
      out->emplace_back(tag(group, row.key, field.name), *(row.values.*field.value));
  for (const AtK& at : row.values.at) {
    out->emplace_back(tag(group, row.key, fmt::format("precision@{}", at.k)), at.precision);
    out->emplace_back(tag(group, row.key, fmt::format("recall@{}", at.k)), at.recall);
  }
}

std::string age_fact(const AgeHistogram& ages) {
  if (ages.count() == 0) return "not known";
  return fmt::format("p50 {:.0f}, p99 {:.0f}, max {} examples applied since their pull",
                     ages.quantile(0.5), ages.quantile(0.99), with_commas(ages.max()));
}

std::vector<std::pair<std::string, std::string>> facts_of(const Summary& s) {
  const auto seconds = [](double v) { return fmt::format("{:.1f} s", v); };
  return {{"state", s.state},
          {"examples trained by this run", with_commas(s.examples)},
          {"examples per second", with_commas(static_cast<uint64_t>(s.examples_per_s))},
          {"training", seconds(s.train_s)},
          {"start to end", seconds(s.wall_s)},
          {"progressive AUC", s.train_auc ? fmt::format("{:.6f} (by buckets)", *s.train_auc) : "-"},
          {"progressive log loss", s.train_logloss ? fmt::format("{:.6f}", *s.train_logloss) : "-"},
          {"progressive loss", fmt::format("{:.6f}", s.progressive.loss)},
          {"rows", with_commas(s.rows)},
          {"peak memory", human_bytes(s.peak_rss_bytes)},
          {"threads", std::to_string(s.threads)},
          {"precision", s.precision},
          {"instruction set", s.isa},
          {"mode", s.mode},
          {"wire", s.wire},
          {"age of gradients", age_fact(s.pushes.ages)},
          {"stopped by", s.stopped_by.empty() ? "nothing" : s.stopped_by},
          {"left", left_line(s)},
          {"best checkpoint", s.best.empty() ? "not asked for" : s.best},
          {"resumed from", s.resumed_from.empty() ? "nothing: a fresh start" : s.resumed_from},
          {"model hash", fmt::format("{:016x}", s.model_hash)}};
}

}  // namespace

Status RunRecord::begin(uint64_t examples) {
  if (events_) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(
      events_, EventFile::create(join_path(output_, "tensorboard"), wall_clock_s(), examples));
  return Status::ok();
}

Status RunRecord::row(const CurveRow& row, const MetricReport& seen) {
  if (!events_) return Status::ok();
  Scalars values = {{"train/loss", row.loss_since},
                    {"train/loss_average", row.loss_average},
                    {"train/examples_per_s", row.examples_per_s}};
  if (row.auc) values.emplace_back("train/progressive_auc", *row.auc);
  for (const MetricReport::Row& part : seen.rows) add_values("progressive", part, &values);
  return events_->add({wall_clock_s(), row.examples, std::move(values)});
}

Status RunRecord::tested(const std::string& pass, uint64_t examples, const MetricReport& report) {
  tests_.push_back({pass, examples, report});
  if (!events_) return Status::ok();
  Scalars values = {{"held-out/loss", report.loss}};
  for (const MetricReport::Row& row : report.rows) add_values("held-out", row, &values);
  return events_->add({wall_clock_s(), examples, std::move(values)});
}

Status RunRecord::write_report(const Summary& summary, const std::vector<CurveRow>& curve) const {
  RunReport report;
  report.title = summary.job;
  report.note = accounting_line(summary);
  report.facts = facts_of(summary);
  report.curve = curve;
  report.tests = tests_;
  if (summary.progressive.rows.size() > 1) report.progressive = summary.progressive;
  return write_file_atomic(join_path(output_, "report.html"), html_report(report));
}

}  // namespace flux
