#include "flux/report/html_report.h"

#include <functional>

#include <fmt/format.h>

#include "flux/base/text.h"
#include "flux/report/chart.h"
#include "flux/report/markup.h"

namespace flux {
namespace {

constexpr const char* kHead = R"(<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<style>
:root { color-scheme: light dark; --bg: #ffffff; --fg: #1c1c1c; --dim: #6a6a6a; --line: #dddddd;
  --c0: #1a5fb4; --c1: #b3261e; --c2: #26784c; --c3: #8a5a00; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #161616; --fg: #e8e8e8; --dim: #a0a0a0; --line: #3a3a3a;
    --c0: #78aeed; --c1: #f28b82; --c2: #7fd6a5; --c3: #e5b567; } }
body { background: var(--bg); color: var(--fg); font: 15px/1.45 sans-serif; max-width: 60em;
  margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { border-bottom: 1px solid var(--line); padding: 0.25em 0.8em; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.dim { color: var(--dim); }
.chart { width: 100%; max-width: 760px; font: 12px sans-serif; display: block; margin: 1em 0; }
.chart text { fill: var(--dim); }
.chart .title { fill: var(--fg); font-size: 14px; }
.grid { stroke: var(--line); }
.right { stroke: var(--dim); stroke-dasharray: 4 4; }
polyline { fill: none; stroke-width: 2; }
.l0 { stroke: var(--c0); } .l1 { stroke: var(--c1); } .l2 { stroke: var(--c2); }
.l3 { stroke: var(--c3); }
.chart .f0 { fill: var(--c0); } .chart .f1 { fill: var(--c1); } .chart .f2 { fill: var(--c2); }
.chart .f3 { fill: var(--c3); }
</style>
)";

std::string facts_table(const RunReport& report) {
  std::string out = "<h2>The run</h2>\n<table>\n";
  for (const auto& [name, value] : report.facts)
    out += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), escaped(value));
  return out + "</table>\n";
}

ChartLine curve_line(const RunReport& report, const char* name, double CurveRow::*value) {
  ChartLine line{name, {}, false};
  for (const CurveRow& row : report.curve)
    line.points.emplace_back(static_cast<double>(row.examples), row.*value);
  return line;
}

ChartLine auc_line(const RunReport& report) {
  ChartLine line{"progressive", {}, false};
  for (const CurveRow& row : report.curve)
    if (row.auc) line.points.emplace_back(static_cast<double>(row.examples), *row.auc);
  return line;
}

ChartLine test_dots(const RunReport& report, const char* name,
                    std::optional<double> MetricValues::*value) {
  ChartLine line{name, {}, true};
  for (const HeldOutTest& test : report.tests)
    if (const MetricValues* whole = test.report.whole(); whole != nullptr && whole->*value)
      line.points.emplace_back(static_cast<double>(test.examples), *(whole->*value));
  return line;
}

std::string curves(const RunReport& report) {
  if (report.curve.empty() && report.tests.empty()) return "";
  const ChartLine loss[] = {curve_line(report, "since last", &CurveRow::loss_since),
                            curve_line(report, "average", &CurveRow::loss_average),
                            test_dots(report, "held-out", &MetricValues::log_loss)};
  const ChartLine auc[] = {auc_line(report), test_dots(report, "held-out", &MetricValues::auc)};
  const ChartLine speed[] = {curve_line(report, "since last", &CurveRow::examples_per_s)};
  return "<h2>Curves over examples</h2>\n" + line_chart("loss", loss) + line_chart("AUC", auc) +
         line_chart("examples per second", speed);
}

std::string row_name(const MetricKey& key) {
  std::string name = key.phase.empty() ? "" : "phase " + key.phase + ", ";
  name += key.head.empty() ? "all examples" : "head " + key.head;
  return key.slice.empty() ? name : name + ", " + key.slice;
}

std::string metric_rows(const MetricValues& values) {
  std::string out;
  const auto row = [&](const std::string& name, double value, const std::string& sentence) {
    out += fmt::format("<tr><th>{}</th><td class='n'>{:.6f}</td><td class='dim'>{}</td></tr>\n",
                       escaped(name), value, escaped(sentence));
  };
  for (const MetricField& field : metric_fields())
    if (values.*field.value) row(field.name, *(values.*field.value), field.sentence);
  for (const AtK& at : values.at) {
    row(fmt::format("precision@{}", at.k), at.precision, "positives among a group's first");
    row(fmt::format("recall@{}", at.k), at.recall, "share of a group's positives among its first");
  }
  return out;
}

std::string metrics(const RunReport& report) {
  if (report.tests.empty()) return "<p class='dim'>Nothing was evaluated on held-out data.</p>\n";
  const HeldOutTest& last = report.tests.back();
  std::string out = fmt::format("<h2>Held-out data after {}</h2>\n", escaped(last.pass));
  for (const MetricReport::Row& row : last.report.rows) {
    out += fmt::format("<h3>{}</h3>\n<p class='dim'>{} examples{}</p>\n<table>\n{}</table>\n",
                       escaped(row_name(row.key)), with_commas(row.values.examples),
                       row.values.exact ? "" : "; rankings by buckets: too many to keep each",
                       metric_rows(row.values));
    out += calibration_chart(row.values.calibration);
  }
  return out;
}

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.6f}", *value) : std::string("-");
}

std::string while_training(const RunReport& report) {
  if (report.progressive.rows.empty()) return "";
  std::string out =
      "<h2>While training</h2>\n<p class='dim'>Each example was predicted before it was learnt; by "
      "buckets, of this run.</p>\n<table>\n<tr><th>part</th><th>examples</th><th>AUC</th>"
      "<th>log loss</th><th>COPC</th></tr>\n";
  for (const MetricReport::Row& row : report.progressive.rows)
    out += fmt::format(
        "<tr><td>{}</td><td class='n'>{}</td><td class='n'>{}</td><td class='n'>{}</td>"
        "<td class='n'>{}</td></tr>\n",
        escaped(row_name(row.key)), with_commas(row.values.examples), cell(row.values.auc),
        cell(row.values.log_loss), cell(row.values.copc));
  return out + "</table>\n";
}

std::string earlier_tests(const RunReport& report) {
  if (report.tests.size() < 2) return "";
  std::string out =
      "<h2>Every evaluation</h2>\n<table>\n"
      "<tr><th>after</th><th>examples trained</th><th>AUC</th><th>log loss</th></tr>\n";
  for (const HeldOutTest& test : report.tests)
    if (const MetricValues* whole = test.report.whole())
      out += fmt::format(
          "<tr><td>{}</td><td class='n'>{}</td><td class='n'>{}</td>"
          "<td class='n'>{}</td></tr>\n",
          escaped(test.pass), with_commas(test.examples), cell(whole->auc), cell(whole->log_loss));
  return out + "</table>\n";
}

}  // namespace

std::string html_report(const RunReport& report) {
  const std::string title = escaped(report.title);
  return std::string(kHead) +
         fmt::format("<title>{0}</title>\n</head>\n<body>\n<h1>{0}</h1>\n<p>{1}</p>\n", title,
                     escaped(report.note)) +
         metrics(report) + while_training(report) + curves(report) + earlier_tests(report) +
         facts_table(report) + "</body>\n</html>\n";
}

}  // namespace flux
