#include "flux/report/html_report.h"

#include <cmath>

#include <gtest/gtest.h>

#include "flux/report/chart.h"

namespace flux {
namespace {

RunReport sample() {
  RunReport report;
  report.title = "a <b> & 'c'";
  report.note = "examples 300 applied once";
  report.facts = {{"threads", "2"}, {"model", "out/\x01x"}};
  report.curve = {{100, 0.7, 0.7, 0.51, 1000}, {200, 0.6, 0.65, 0.62, 20000}};
  MetricValues values;
  values.examples = 1234;
  values.auc = 0.654321;
  values.copc = 1.25;
  values.at = {{5, 0.5, 0.125}};
  values.calibration = {{10, 0.1, 0.2}, {10, 0.4, 0.3}};
  report.tests = {{"pass-0", 100, {1234, 0.5, {{{}, values}}}},
                  {"pass-1", 200, {1234, 0.4, {{{}, values}, {{"buy", "slot=3"}, values}}}}};
  return report;
}

TEST(HtmlReport, HasTheNumbersAndNothingFromOutside) {
  const std::string html = html_report(sample());
  for (const char* part : {"0.654321", "1.250000", "precision@5", "0.125000", "1,234", "pass-1",
                           "head buy, slot=3", "threads", "polyline", "circle"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  EXPECT_NE(html.find("a &#60;b&#62; &#38; &#39;c&#39;"), std::string::npos);
  for (const char* refused : {"<script", "src=", "href=", "url(", "@import"})
    EXPECT_EQ(html.find(refused), std::string::npos) << refused;
  size_t links = 0;  // only the names of two languages
  for (size_t at = html.find("http"); at != std::string::npos; at = html.find("http", at + 1))
    links += html.compare(at, 18, "http://www.w3.org/") == 0 ? 0 : 1;
  EXPECT_EQ(links, 0U);
}

TEST(HtmlReport, ARunThatDidNothingHasAPageToo) {
  const std::string html = html_report({"empty", "", {}, {}, {}});
  EXPECT_NE(html.find("Nothing was evaluated"), std::string::npos);
  EXPECT_EQ(html.find("<svg"), std::string::npos);
}

TEST(Chart, LeavesOutWhatIsNoNumber) {
  const ChartLine lines[] = {{"loss", {{1, NAN}, {2, 0.5}, {3, INFINITY}}, false}};
  const std::string svg = line_chart("t", lines);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  const ChartLine none[] = {{"loss", {{1, NAN}}, false}};
  EXPECT_EQ(line_chart("t", none), "");
  EXPECT_EQ(calibration_chart({}), "");
}

TEST(Chart, TheDiagonalIsWhereBothRatesAreEqual) {
  const CalibrationBin bins[] = {{1, 0.5, 0.5}, {1, 1, 1}};
  const std::string svg = calibration_chart(bins);
  // 420 x 380 with its margins: (0.5, 0.5) lies in the middle of the field.
  EXPECT_NE(svg.find("cx='240.0' cy='189.0'"), std::string::npos) << svg;
}

}  // namespace
}  // namespace flux
