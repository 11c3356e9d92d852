#include "flux/main/timeline_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "flux/base/text.h"

namespace flux {
namespace {

constexpr int kWidth = 960, kHeight = 420, kLeft = 84, kRight = 24, kTop = 84, kBottom = 56;
constexpr int kBinsMax = 240;
constexpr double kBinLeast_s = 0.5;
constexpr size_t kMarksMax = 2000;
constexpr const char* kSpeed = "#1a5fb4";
constexpr std::array kColors = {"#b3261e", "#b06a00", "#6a3fa0", "#00727a",
                                "#a0195e", "#3b6d11", "#5e5e5e", "#20305e"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&') {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

// A round number at or above v / parts: 1, 2 or 5 times a power of ten.
double step_for(double v, int parts) {
  const double raw = std::max(v / parts, 1e-9);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw) return factor * power;
  return 10 * power;
}

std::string time_text(double s, double step) {
  if (step < 1) return fmt::format("{:.1f} s", s);
  return s < 60 ? fmt::format("{:.0f} s", s)
                : fmt::format("{}:{:02}", static_cast<int>(s) / 60, static_cast<int>(s) % 60);
}

struct Point {
  double t = 0, rate = 0;
};

// Examples per second in bins; where nobody answered, the line goes straight on.
std::vector<Point> speeds(const std::vector<DrillSample>& samples, double end) {
  const double width = std::max(kBinLeast_s, end / kBinsMax);
  std::vector<Point> out;
  const DrillSample* from = nullptr;
  for (const DrillSample& sample : samples) {
    if (!sample.answered) continue;
    if (from != nullptr && sample.t - from->t < width) continue;
    if (from != nullptr)
      out.push_back({(sample.t + from->t) / 2,
                     static_cast<double>(sample.applied - from->applied) / (sample.t - from->t)});
    from = &sample;
  }
  return out;
}

class Picture {
 public:
  Picture(double end, double most) : end_(std::max(end, 1e-3)), most_(std::max(most, 1.0)) {}

  void frame(const Timeline& timeline) {
    out_ = fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
        "font-family='sans-serif' font-size='12'>\n<rect width='{0}' height='{1}' fill='white'/>\n"
        "<text x='{2}' y='20' font-size='15'>{3}</text>\n"
        "<text x='{2}' y='40' fill='#444'>{4}</text>\n",
        kWidth, kHeight, kLeft, escaped(timeline.title), escaped(timeline.note));
    const double step = step_for(most_, 5);
    for (double v = 0; v <= most_; v += step)
      out_ += fmt::format(
          "<line x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}' stroke='#ddd'/>\n"
          "<text x='{}' y='{:.1f}' text-anchor='end'>{}</text>\n",
          kLeft, kWidth - kRight, y(v), y(v), kLeft - 6, y(v) + 4,
          with_commas(static_cast<uint64_t>(v)));
    const double second = step_for(end_, 8);
    for (double t = 0; t <= end_; t += second)
      out_ += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{}</text>\n", x(t),
                          kHeight - kBottom + 24, time_text(t, second));
    out_ += fmt::format(
        "<text x='{0}' y='{1}' fill='{2}' text-anchor='middle' transform='rotate(-90 {0} {1})'>"
        "examples applied per second</text>\n",
        14, (kTop + kHeight - kBottom) / 2, kSpeed);
    out_ += fmt::format(
        "<text x='{}' y='{}' text-anchor='middle'>time since the drill began"
        "</text>\n",
        (kLeft + kWidth - kRight) / 2, kHeight - 10);
  }

  // Grey where nobody answered.
  void away(const std::vector<DrillSample>& samples) {
    for (size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].answered) continue;
      const double from = samples[i].t;
      while (i + 1 < samples.size() && !samples[i].answered) ++i;
      out_ += fmt::format("<rect x='{:.1f}' y='{}' width='{:.1f}' height='{}' fill='#e4e4e4'/>\n",
                          x(from), kTop, std::max(1.0, x(samples[i].t) - x(from)),
                          kHeight - kTop - kBottom);
    }
  }

  void marks(const std::vector<DrillFault>& faults) {
    std::map<std::string, size_t> counts;
    for (const DrillFault& fault : faults) ++counts[fault.label];
    std::map<std::string, const char*> colors;
    int at = kLeft;
    for (const auto& [label, count] : counts) {
      colors[label] = kColors[colors.size() % kColors.size()];
      const std::string text = fmt::format("{} ({})", label, count);
      out_ += fmt::format(
          "<path d='M{} 54 l5 9 l-10 0 z' fill='{}'/><text x='{}' y='63' fill='{}'>{}</text>\n",
          at + 5, colors[label], at + 14, colors[label], escaped(text));
      at += 26 + static_cast<int>(text.size()) * 7;
    }
    const size_t every = faults.size() / kMarksMax + 1;
    for (size_t i = 0; i < faults.size(); i += every) {
      const double where = x(faults[i].t);
      const char* color = colors[faults[i].label];
      if (faults[i].healed)
        out_ +=
            fmt::format("<rect x='{:.1f}' y='{}' width='{:.1f}' height='5' fill='{}'/>\n", where,
                        kHeight - kBottom - 5, std::max(1.0, x(*faults[i].healed) - where), color);
      out_ += fmt::format(
          "<path d='M{0:.1f} {1} V{2}' stroke='{3}' stroke-opacity='0.35'/>"
          "<path d='M{0:.1f} {2} l4 8 l-8 0 z' fill='{3}'/>\n",
          where, kTop, kHeight - kBottom, color);
    }
  }

  void speed(const std::vector<Point>& points) {
    std::string line;
    for (const Point& p : points) line += fmt::format("{:.1f},{:.1f} ", x(p.t), y(p.rate));
    out_ += fmt::format("<polyline fill='none' stroke='{}' stroke-width='1.8' points='{}'/>\n",
                        kSpeed, line);
  }

  void reference(const Timeline& timeline) {
    if (timeline.reference <= 0) return;
    const double at = y(timeline.reference);
    out_ += fmt::format(
        "<line x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}' stroke='#222' stroke-dasharray='6 4'/>\n"
        "<text x='{}' y='{:.1f}' text-anchor='end'>undisturbed {}/s{}</text>\n",
        kLeft, kWidth - kRight, at, at, kWidth - kRight, at - 5,
        with_commas(static_cast<uint64_t>(timeline.reference)),
        timeline.goodput > 0 ? fmt::format("; goodput {:.0f} %", 100 * timeline.goodput) : "");
  }

  std::string finish() { return out_ + "</svg>\n"; }

 private:
  double x(double t) const {
    return kLeft + std::clamp(t / end_, 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  double y(double rate) const {
    return kHeight - kBottom - std::clamp(rate / most_, 0.0, 1.0) * (kHeight - kTop - kBottom);
  }
  const double end_, most_;
  std::string out_;
};

}  // namespace

std::string timeline_svg(const Timeline& timeline, const std::vector<DrillSample>& samples,
                         const std::vector<DrillFault>& faults) {
  const double end = samples.empty() ? 1 : samples.back().t;
  const std::vector<Point> points = speeds(samples, end);
  double most = timeline.reference;
  for (const Point& p : points) most = std::max(most, p.rate);
  Picture picture(end, most * 1.12);
  picture.frame(timeline);
  picture.away(samples);
  picture.marks(faults);
  picture.speed(points);
  picture.reference(timeline);
  return picture.finish();
}

}  // namespace flux
