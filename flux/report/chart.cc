#include "flux/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "flux/base/text.h"
#include "flux/report/markup.h"

namespace flux {
namespace {

constexpr double kWidth = 720, kHeight = 280, kLeft = 80, kRight = 20, kTop = 34, kBottom = 36;
constexpr int kTicks = 4;
constexpr int kColors = 4;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void widen() {
    if (!(high > low)) {
      low -= 0.5;
      high += 0.5;
    }
  }
  double share(double value) const { return (value - low) / (high - low); }
  double at(double share) const { return low + (high - low) * share; }
};

struct Frame {
  double width, height;
  Range x, y;
  double to_x(double v) const { return kLeft + x.share(v) * (width - kLeft - kRight); }
  double to_y(double v) const { return height - kBottom - y.share(v) * (height - kTop - kBottom); }
};

std::string number(double value) {
  const double size = std::fabs(value);
  if (size >= 10000) return (value < 0 ? "-" : "") + with_commas(static_cast<uint64_t>(size));
  return fmt::format("{:.4g}", value);
}

bool finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

std::string open_chart(const Frame& frame, const std::string& title) {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' class='chart' viewBox='0 0 {0} {1}' role='img' "
      "aria-label='{2}'>\n<text class='title' x='{3}' y='18'>{2}</text>\n",
      frame.width, frame.height, escaped(title), kLeft);
}

std::string axes(const Frame& frame) {
  std::string out;
  for (int i = 0; i <= kTicks; ++i) {
    const double share = static_cast<double>(i) / kTicks;
    const double x = frame.to_x(frame.x.at(share)), y = frame.to_y(frame.y.at(share));
    out += fmt::format("<line class='grid' x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}'/>\n",
                       kLeft, frame.width - kRight, y, y);
    out += fmt::format("<text class='tick' x='{:.1f}' y='{:.1f}' text-anchor='end'>{}</text>\n",
                       kLeft - 6, y + 4, number(frame.y.at(share)));
    out += fmt::format("<text class='tick' x='{:.1f}' y='{:.1f}' text-anchor='middle'>{}</text>\n",
                       x, frame.height - kBottom + 16, number(frame.x.at(share)));
  }
  return out;
}

std::string draw(const Frame& frame, const ChartLine& line, int color) {
  std::string points, dots;
  for (const auto& point : line.points) {
    if (!finite(point)) continue;
    const double x = frame.to_x(point.first), y = frame.to_y(point.second);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    dots += fmt::format(
        "<circle class='f{}' cx='{:.1f}' cy='{:.1f}' r='4'><title>{}: {:.6g}"
        "</title></circle>\n",
        color, x, y, escaped(line.name), point.second);
  }
  if (line.dots) return dots;
  return fmt::format("<polyline class='l{}' points='{}'/>\n", color, points);
}

std::string legend(const Frame& frame, std::span<const ChartLine> lines) {
  std::string out;
  double x = frame.width - kRight;
  for (size_t i = lines.size(); i > 0; --i) {
    out += fmt::format("<text class='f{}' x='{:.1f}' y='18' text-anchor='end'>{} {}</text>\n",
                       (i - 1) % kColors, x, lines[i - 1].dots ? "●" : "—",
                       escaped(lines[i - 1].name));
    x -= 8.0 * static_cast<double>(lines[i - 1].name.size()) + 30;
  }
  return out;
}

}  // namespace

std::string line_chart(const std::string& title, std::span<const ChartLine> lines) {
  Frame frame{kWidth, kHeight, {}, {}};
  frame.x.include(0);
  for (const ChartLine& line : lines)
    for (const auto& point : line.points)
      if (finite(point)) {
        frame.x.include(point.first);
        frame.y.include(point.second);
      }
  if (frame.y.low > frame.y.high) return "";
  frame.x.widen();
  frame.y.widen();
  std::string out = open_chart(frame, title) + axes(frame) + legend(frame, lines);
  for (size_t i = 0; i < lines.size(); ++i)
    out += draw(frame, lines[i], static_cast<int>(i % kColors));
  return out + "</svg>\n";
}

std::string calibration_chart(std::span<const CalibrationBin> bins) {
  if (bins.empty()) return "";
  Frame frame{420, 380, {}, {}};
  frame.x.include(0);
  double heaviest = 0;
  for (const CalibrationBin& bin : bins) {
    frame.x.include(std::max(bin.predicted, bin.actual));
    heaviest = std::max(heaviest, bin.weight);
  }
  frame.x.widen();
  frame.y = frame.x;
  const double high = frame.x.high;
  std::string out = open_chart(frame, "actual rate (up) by predicted rate (right)") + axes(frame);
  out += fmt::format("<line class='right' x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}'/>\n",
                     frame.to_x(0), frame.to_y(0), frame.to_x(high), frame.to_y(high));
  for (const CalibrationBin& bin : bins)
    out += fmt::format(
        "<circle class='f0' cx='{:.1f}' cy='{:.1f}' r='{:.1f}'><title>predicted "
        "{:.5f}, actual {:.5f}, weight {:.6g}</title></circle>\n",
        frame.to_x(bin.predicted), frame.to_y(bin.actual), 2 + 4 * std::sqrt(bin.weight / heaviest),
        bin.predicted, bin.actual, bin.weight);
  return out + "</svg>\n";
}

}  // namespace flux
