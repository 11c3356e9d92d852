#include "flux/report/curve.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <sstream>

#include <fmt/format.h>

#include "flux/base/text.h"
#include "flux/report/markup.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr const char* kHeader = "examples\tloss_since\tloss_average\tauc\texamples_per_s\n";
constexpr const char* kNone = "null";
constexpr int kWidth = 760, kHeight = 420, kLeft = 70, kRight = 70, kTop = 40, kBottom = 50;

struct Range {
  double low = 0, high = 1;
  double share(double v) const { return (v - low) / (high - low); }
};

Range range_of(const std::vector<CurveRow>& rows, const std::function<double(const CurveRow&)>& f) {
  Range r{1e300, -1e300};
  for (const CurveRow& row : rows) {
    r.low = std::min(r.low, f(row));
    r.high = std::max(r.high, f(row));
  }
  if (!(r.high - r.low > 1e-6)) return {r.low - 0.01, r.high + 0.01};
  const double pad = (r.high - r.low) * 0.08;
  return {r.low - pad, r.high + pad};
}

double x_at(const CurveRow& row, double most) {
  return kLeft + static_cast<double>(row.examples) / most * (kWidth - kLeft - kRight);
}
double y_at(double share) {
  return kHeight - kBottom - share * (kHeight - kTop - kBottom);
}

void draw_line(std::string* out, const std::vector<CurveRow>& rows, double most, const Range& range,
               const std::function<double(const CurveRow&)>& f, const char* color) {
  std::string points;
  for (const CurveRow& row : rows)
    points += fmt::format("{:.1f},{:.1f} ", x_at(row, most), y_at(range.share(f(row))));
  *out += fmt::format("<polyline fill='none' stroke='{}' stroke-width='2' points='{}'/>\n", color,
                      points);
}

void draw_axis(std::string* out, const Range& range, bool left, const char* color,
               const char* name) {
  const int x = left ? kLeft : kWidth - kRight;
  const char* anchor = left ? "end" : "start";
  for (int i = 0; i <= 4; ++i) {
    const double y = y_at(i / 4.0);
    *out += fmt::format("<text x='{}' y='{:.1f}' text-anchor='{}' fill='{}'>{:.4f}</text>\n",
                        left ? x - 6 : x + 6, y + 4, anchor, color,
                        range.low + (range.high - range.low) * i / 4.0);
    if (left)
      *out += fmt::format("<line x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}' stroke='#ddd'/>\n", kLeft,
                          kWidth - kRight, y, y);
  }
  *out += fmt::format("<text x='{}' y='{}' text-anchor='{}' fill='{}'>{}</text>\n", x, kTop - 12,
                      left ? "start" : "end", color, name);
}

}  // namespace

void Curve::load(const std::string& path, uint64_t examples) {
  const auto text = read_whole_file(path, 64ULL << 20);
  if (!text.is_ok()) return;
  std::istringstream in(text.value());
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    CurveRow row;
    std::string auc;
    if (!(fields >> row.examples >> row.loss_since >> row.loss_average >> auc >>
          row.examples_per_s))
      return;
    if (auc != kNone) row.auc = std::strtod(auc.c_str(), nullptr);
    if (row.examples > examples) return;
    rows_.push_back(row);
  }
}

Status Curve::save(const std::string& path) const {
  std::string out = kHeader;
  for (const CurveRow& row : rows_)
    out += fmt::format("{}\t{:.6f}\t{:.6f}\t{}\t{:.0f}\n", row.examples, row.loss_since,
                       row.loss_average, row.auc ? fmt::format("{:.6f}", *row.auc) : kNone,
                       row.examples_per_s);
  return write_file_atomic(path, out);
}

std::string Curve::to_svg(const std::string& title, double test_auc) const {
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='sans-serif' font-size='12'>\n"
      "<rect width='{0}' height='{1}' fill='white'/>\n"
      "<text x='{2}' y='18' font-size='15'>{3}</text>\n",
      kWidth, kHeight, kLeft, escaped(title));
  if (!rows_.empty()) {
    const double most = static_cast<double>(std::max<uint64_t>(1, rows_.back().examples));
    const auto loss = [](const CurveRow& r) { return r.loss_since; };
    const auto auc = [](const CurveRow& r) { return *r.auc; };
    std::vector<CurveRow> ranked;
    for (const CurveRow& row : rows_)
      if (row.auc) ranked.push_back(row);
    const Range loss_range = range_of(rows_, loss);
    draw_axis(&out, loss_range, true, "#b3261e", "loss since last");
    draw_line(&out, rows_, most, loss_range, loss, "#b3261e");
    if (!ranked.empty()) {
      const Range auc_range = range_of(ranked, auc);
      draw_axis(&out, auc_range, false, "#1a5fb4", "progressive AUC");
      draw_line(&out, ranked, most, auc_range, auc, "#1a5fb4");
    }
    for (int i = 0; i <= 4; ++i)
      out += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{}</text>\n",
                         kLeft + i / 4.0 * (kWidth - kLeft - kRight), kHeight - kBottom + 18,
                         with_commas(static_cast<uint64_t>(most * i / 4)));
  }
  out += fmt::format("<text x='{}' y='{}' text-anchor='middle'>examples{}</text>\n</svg>\n",
                     kWidth / 2, kHeight - 12,
                     test_auc > 0 ? fmt::format("; test AUC {:.5f}", test_auc) : "");
  return out;
}

}  // namespace flux
