#include "flux/main/progress_view.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "flux/base/text.h"

namespace flux {
namespace {

constexpr double kDivergedLoss = 5;  // guessing costs 0.7

double seconds(TimeNs from, TimeNs to) {
  return static_cast<double>(to - from) * 1e-9;
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

void ProgressView::clear_bar() {
  if (bar_shown_) print("\r\033[K");
  bar_shown_ = false;
}

void ProgressView::say(const std::string& line) {
  if (show_ == Show::kNothing) return;
  clear_bar();
  print(line + "\n");
}

uint64_t ProgressView::shown(const ProgressPoint& progress) const {
  return total_ > 0 ? std::min(progress.applied, total_) : progress.applied;
}

void ProgressView::begin(const ProgressPoint& progress, uint64_t total, TimeNs now) {
  first_examples_ = progress.examples;
  total_ = total;
  start_ = last_row_ = now;
  say(
      fmt::format("{:>14} {:>12} {:>12} {:>12} {:>12} {:>9}\n{:>14} {:>12} {:>12} {:>12} {:>12} "
                  "{:>9}",
                  "examples", "since last", "average", "progressive", "examples", "time", "",
                  "log loss", "log loss", "AUC", "per second", "left"));
}

bool ProgressView::due(uint64_t examples, TimeNs now) const {
  if (examples == last_examples_) return false;
  if (rows_ == 0) return true;  // the first row as soon as there is anything to say
  const double wait = std::max(1.0, seconds(start_, now) / 12);
  return seconds(last_row_, now) >= wait;
}

void ProgressView::update(const ProgressPoint& progress, TimeNs now) {
  if (due(progress.examples, now)) print_row(progress, now);
}

void ProgressView::print_row(const ProgressPoint& progress, TimeNs now) {
  const double loss = progress.loss_sum;
  CurveRow row = last_;  // where nothing was trained since, the figures of then hold
  row.examples = shown(progress);
  row.auc = progress.auc;
  if (progress.examples > last_examples_) {
    const auto fresh = static_cast<double>(progress.examples - last_examples_);
    row.loss_since = (loss - last_loss_) / fresh;
    row.loss_average = loss / static_cast<double>(progress.examples);
    row.examples_per_s = fresh / std::max(1e-9, seconds(last_row_, now));
  }
  const double left = total_ > row.examples && row.examples_per_s > 0
                          ? static_cast<double>(total_ - row.examples) / row.examples_per_s
                          : 0;
  say(fmt::format("{:>14} {:>12.6f} {:>12.6f} {:>12.6f} {:>12} {:>9}", with_commas(row.examples),
                  row.loss_since, row.loss_average, row.auc,
                  with_commas(static_cast<uint64_t>(row.examples_per_s)), human_seconds(left)));
  if (!(row.loss_since < kDivergedLoss) && !warned_) {
    say("warning: the loss is far above chance: the model diverges; lower the learning rate");
    warned_ = true;
  }
  curve_->add(row);
  last_ = row;
  last_row_ = now;
  last_examples_ = progress.examples;
  last_loss_ = loss;
  ++rows_;
}

void ProgressView::draw_bar(const ProgressPoint& progress, TimeNs now) {
  if (show_ != Show::kBar || total_ == 0) return;
  constexpr int kCells = 40;
  const double share = static_cast<double>(shown(progress)) / static_cast<double>(total_);
  const int full = static_cast<int>(share * kCells);
  const auto trained =
      static_cast<double>(progress.examples - std::min(progress.examples, first_examples_));
  const double speed = trained / std::max(1e-9, seconds(start_, now));
  print(fmt::format("\r\033[K[{}{}] {:5.1f}%  {} examples/s", std::string(full, '#'),
                    std::string(kCells - full, '.'), share * 100,
                    with_commas(static_cast<uint64_t>(speed))));
  bar_shown_ = true;
}

void ProgressView::finish(const ProgressPoint& progress, TimeNs now) {
  if (progress.examples > last_examples_ || (rows_ > 0 && shown(progress) > last_.examples))
    print_row(progress, now);
  clear_bar();
}

}  // namespace flux
