#include "flux/main/progress_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "flux/base/text.h"

namespace flux {
namespace {

// What a loss is by chance depends on the model, so it is held against that of the first row.
constexpr double kFarUp = 5;
constexpr uint32_t kFarUpRows = 3;  // in succession

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

void ProgressView::warn(const std::string& line) {
  if (show_ == Show::kNothing) return;
  clear_bar();
  std::fputs((line + "\n").c_str(), stderr);
}

uint64_t ProgressView::shown(const ProgressPoint& progress) const {
  return total_ > 0 ? std::min(progress.applied, total_) : progress.applied;
}

void ProgressView::begin(const ProgressPoint& progress, uint64_t total, TimeNs now) {
  first_examples_ = progress.examples;
  total_ = total;
  start_ = last_row_ = now;
  const char* loss = log_loss_ ? "log loss" : "loss";
  say(
      fmt::format("{:>14} {:>12} {:>12} {:>12} {:>12} {:>9}\n{:>14} {:>12} {:>12} {:>12} {:>12} "
                  "{:>9}",
                  "examples", "since last", "average", "progressive", "examples", "time", "", loss,
                  loss, "AUC", "per second", "left"));
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

void ProgressView::fill_losses(const ProgressPoint& progress, CurveRow* row) {
  const bool parts = !progress.phase.empty();
  const uint64_t examples = parts ? progress.phase_examples : progress.examples;
  const double sum = parts ? progress.phase_loss_sum : progress.loss_sum;
  Losses& of = losses_[progress.phase];
  if (examples <= of.examples) return;
  row->loss_since = (sum - of.sum) / static_cast<double>(examples - of.examples);
  row->loss_average = sum / static_cast<double>(examples);
  of.examples = examples;
  of.sum = sum;
  if (of.rows++ == 0) of.first = row->loss_since;
  of.far_up = of.first > 0 && row->loss_since > kFarUp * of.first ? of.far_up + 1 : 0;
}

void ProgressView::warn_if_diverging(double loss, Losses* of) {
  if (warned_ || (std::isfinite(loss) && of->far_up < kFarUpRows)) return;
  say(
      fmt::format("warning: the loss is {:g} and was {:g} when this run began: the model diverges; "
                  "lower the learning rate",
                  loss, of->first));
  warned_ = true;
}

void ProgressView::print_row(const ProgressPoint& progress, TimeNs now) {
  CurveRow row = last_;  // where nothing was trained since, the figures of then hold
  row.examples = shown(progress);
  row.auc = progress.auc;
  fill_losses(progress, &row);
  if (progress.examples > last_examples_)
    row.examples_per_s = static_cast<double>(progress.examples - last_examples_) /
                         std::max(1e-9, seconds(last_row_, now));
  const double left = total_ > row.examples && row.examples_per_s > 0
                          ? static_cast<double>(total_ - row.examples) / row.examples_per_s
                          : 0;
  if (progress.phase != last_phase_) say("phase " + progress.phase);
  say(fmt::format("{:>14} {:>12.6f} {:>12.6f} {:>12} {:>12} {:>9}", with_commas(row.examples),
                  row.loss_since, row.loss_average, row.auc ? fmt::format("{:.6f}", *row.auc) : "-",
                  with_commas(static_cast<uint64_t>(row.examples_per_s)), human_seconds(left)));
  warn_if_diverging(row.loss_since, &losses_[progress.phase]);
  curve_->add(row);
  last_ = row;
  last_row_ = now;
  last_examples_ = progress.examples;
  last_phase_ = progress.phase;
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
