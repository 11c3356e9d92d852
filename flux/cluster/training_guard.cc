#include "flux/cluster/training_guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace flux {
namespace {

// A window.
constexpr uint64_t kWindowExamples = 2000, kWindowBatches = 16;
constexpr uint64_t kWindowShare = 8;               // of what was seen, for later windows
constexpr uint64_t kWindowExamplesMax = 1U << 20;  // enough for any figure here
constexpr size_t kWindowsKept = 4;

constexpr uint32_t kWindowsSick = 2;  // speak for a warning before it is said
constexpr uint32_t kTimesMax = 3;     // that a warning is said
constexpr size_t kWarningsMax = 64;

// worse_than_constant: in standard errors, and as a share of the constant's loss.
constexpr double kSigmas = 5, kWorse = 0.03;
constexpr double kRareMin = 50;  // examples of the rarer class in a window
// A loss that falls by so much from window to window is on its way, and a network that never was
// better than a constant gets so long.
constexpr double kFalls = 0.01;
constexpr uint64_t kStartExamples = 20'000, kStartBatches = 100;

// not_learning
constexpr uint64_t kLearnExamples = 30'000, kLearnBatches = 120;
constexpr double kLearnRareMin = 300, kLearnGain = 0.005, kLearnCorrelation = 0.05;

// overconfident
constexpr double kSureShare = 0.01, kSureTimes = 10, kSureMin = 20;

// dead_units
constexpr double kDeadShare = 0.9;
constexpr uint32_t kUnitsMin = 8;

// loss_rises, gradient_blow_up
constexpr double kRises = 2, kNormTimes = 30, kBlowWorse = 1.3;

// Tests: examples of each class, and three standard errors of the AUC.
constexpr double kTestClassMin = 100, kTestErrorMax = 0.05;

double number(uint64_t n) {
  return static_cast<double>(n);
}

// Only what is a sum of real measurements.
bool sound(const HeadHealth& h) {
  const double all[] = {h.loss,       h.constant,           h.gap_squares,   h.label,
                        h.prediction, h.prediction_squares, h.label_squares, h.product,
                        h.sure,       h.sure_wrong,         h.sure_expected};
  return h.examples > 0 && h.batches > 0 && h.gap_squares >= 0 &&
         std::all_of(std::begin(all), std::end(all), [](double v) { return std::isfinite(v); });
}

bool sound(const HealthPiece& p) {
  return p.examples > 0 && p.batches > 0 && std::isfinite(p.loss) && std::isfinite(p.norm) &&
         std::isfinite(p.loss_squares) && p.heads.size() <= kHealthPartsMax &&
         p.layers.size() <= kHealthPartsMax;
}

void add_head(HeadHealth* sum, const HeadHealth& h) {
  sum->name = h.name;
  sum->kind = h.kind;
  sum->examples += h.examples;
  sum->batches += h.batches;
  sum->loss += h.loss;
  sum->constant += h.constant;
  sum->gap_squares += h.gap_squares;
  sum->label += h.label;
  sum->label_squares += h.label_squares;
  sum->prediction += h.prediction;
  sum->prediction_squares += h.prediction_squares;
  sum->product += h.product;
  sum->sure += h.sure;
  sum->sure_wrong += h.sure_wrong;
  sum->sure_expected += h.sure_expected;
}

// (loss - constant) / constant, and the standard error of that.
struct Excess {
  double value = 0, error = 0;
};
std::optional<Excess> excess_of(const HeadHealth& h) {
  if (h.batches < 2 || h.constant <= 0) return std::nullopt;
  const double n = number(h.batches), gap = h.loss - h.constant;
  const double variance = std::max(0.0, h.gap_squares - gap * gap / n) * n / (n - 1);
  return Excess{gap / h.constant, std::sqrt(variance) / h.constant};
}

// Of predictions and labels; nothing if either does not vary.
std::optional<double> correlation_of(const HeadHealth& h) {
  const double n = number(h.examples);
  const double labels = h.label_squares - h.label * h.label / n;
  const double predictions = h.prediction_squares - h.prediction * h.prediction / n;
  if (labels <= 0 || predictions <= 1e-12 * h.prediction_squares) return std::nullopt;
  const double r = (h.product - h.label * h.prediction / n) / std::sqrt(labels * predictions);
  return std::isfinite(r) ? std::optional(std::clamp(r, -1.0, 1.0)) : std::nullopt;
}

// Examples of the rarer class; of values, all that were seen.
double rarer(const HeadHealth& h) {
  if (h.kind != HeadKind::kLogLoss) return number(h.examples);
  return std::max(0.0, std::min(h.label, number(h.examples) - h.label));
}

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

std::string counted_windows(uint64_t examples) {
  return fmt::format("the last {} examples looked at", examples);
}

double entropy(double p) {
  if (p <= 0 || p >= 1) return 0;
  return -p * std::log(p) - (1 - p) * std::log(1 - p);
}

}  // namespace

std::string to_string(const TrainingWarning& warning) {
  return (warning.phase.empty() ? "" : "phase " + warning.phase + ": ") + warning.text;
}

TrainingGuard::TrainingGuard(std::vector<std::string> phases) : phases_(std::move(phases)) {}

bool TrainingGuard::suspect() const {
  return std::any_of(warnings_.begin(), warnings_.end(),
                     [](const TrainingWarning& w) { return w.active; });
}

std::vector<TrainingWarning> TrainingGuard::take(const HealthPiece& piece) {
  begun_.clear();
  if (!sound(piece) || piece.phase >= std::max<size_t>(1, phases_.size())) return {};
  Phase& phase = state_[piece.phase];
  add(piece, &phase);
  if (full(phase)) judge(piece.phase, &phase);
  std::vector<TrainingWarning> out;
  for (const size_t at : begun_) out.push_back(warnings_[at]);
  return out;
}

void TrainingGuard::add(const HealthPiece& piece, Phase* phase) {
  phase->seen += piece.examples;
  phase->batches += piece.batches;
  HealthPiece& w = phase->window;
  w.examples += piece.examples;
  w.batches += piece.batches;
  w.loss += piece.loss;
  w.loss_squares += piece.loss_squares;
  w.norms += piece.norms;
  w.norm += piece.norm;
  for (const HeadHealth& head : piece.heads)
    if (sound(head) && (phase->heads.contains(head.name) || phase->heads.size() < kHealthPartsMax))
      add_head(&phase->heads[head.name].window, head);
  for (const LayerHealth& layer : piece.layers) {
    if (!phase->layers.contains(layer.name) && phase->layers.size() >= kHealthPartsMax) continue;
    Layer& sum = phase->layers[layer.name];
    sum.units += layer.units;
    sum.dead += std::min(layer.dead, layer.units);
    ++sum.pieces;
  }
}

bool TrainingGuard::full(const Phase& phase) const {
  const uint64_t examples =
      std::clamp(phase.seen / kWindowShare, kWindowExamples, kWindowExamplesMax);
  return phase.window.examples >= examples && phase.window.batches >= kWindowBatches;
}

void TrainingGuard::judge(uint32_t number, Phase* phase) {
  for (auto& [name, head] : phase->heads) {
    if (head.window.examples == 0) continue;
    const Place place{number, name, "head"};
    head.windows.push_back(head.window);
    if (head.windows.size() > kWindowsKept) head.windows.pop_front();
    judge_constant(place, *phase, &head);
    judge_learning(place, *phase, head);
    judge_sure(place, *phase, &head);
  }
  judge_norm(number, phase);
  judge_loss(number, phase);
  for (auto& [name, layer] : phase->layers) {
    judge_layer({number, name, "layer"}, *phase, &layer);
    layer = {0, 0, 0, layer.windows};
  }
  for (auto& [name, head] : phase->heads) head.window = {};
  phase->window = {};
}

void TrainingGuard::judge_constant(const Place& place, const Phase& phase, Head* head) {
  const HeadHealth& w = head->window;
  const std::optional<Excess> now = excess_of(w);
  if (!now || rarer(w) < kRareMin) return;
  const bool worse = now->value > kWorse && now->value > kSigmas * now->error;
  const bool starts =
      !head->was_good && (phase.seen < kStartExamples || phase.batches < kStartBatches);
  const bool falls = !head->excess || *head->excess - now->value > kFalls * std::abs(*head->excess);
  head->excess = now->value;
  if (now->value < 0) head->was_good = true;
  if (!worse)
    head->worse = 0;
  else if (!falls && !starts)
    ++head->worse;
  if (worse && head->worse < kWindowsSick) return;  // as it was
  const double n = number(w.examples);
  set("worse_than_constant", place, phase.seen, worse,
      fmt::format("the loss over {} is {:.5g}, where always predicting the mean of the labels "
                  "costs {:.5g}, and it does not fall; the learning rate is probably too high: "
                  "lower lr of the tables and of dense_optimizer, and if that does not help, "
                  "pull_ahead, push_in_flight or the number of workers",
                  counted_windows(w.examples), w.loss / n, w.constant / n));
}

void TrainingGuard::judge_learning(const Place& place, const Phase& phase, const Head& head) {
  HeadHealth sum;
  for (const HeadHealth& w : head.windows) add_head(&sum, w);
  const std::optional<Excess> excess = excess_of(sum);
  if (!excess || sum.kind == HeadKind::kClasses) return;
  if (phase.seen < kLearnExamples || phase.batches < kLearnBatches || rarer(sum) < kLearnRareMin)
    return;
  const double n = number(sum.examples), noise = 3 / std::sqrt(n);
  const std::optional<double> r = correlation_of(sum);
  const double gain = -excess->value + 3 * excess->error;  // at the most
  const bool knows = r && (*r > noise * 1.5 || *r + noise > kLearnCorrelation);
  set("not_learning", place, phase.seen, !knows && gain < kLearnGain,
      fmt::format("after {} examples the predictions say no more than the mean of the labels (loss "
                  "{:.5g} against {:.5g}, correlation with the label {:.2g}); the labels may not "
                  "belong to their examples, or nothing moves: check the label column with flux "
                  "data stats, then the learning rates (lr), which may be far too low",
                  phase.seen, sum.loss / n, sum.constant / n, r.value_or(0)));
}

void TrainingGuard::judge_sure(const Place& place, const Phase& phase, Head* head) {
  const HeadHealth& w = head->window;
  if (w.kind != HeadKind::kLogLoss) return;
  const double n = number(w.examples);
  const bool sick = w.sure_wrong >= kSureMin && w.sure_wrong > kSureShare * n &&
                    w.sure_wrong > kSureTimes * w.sure_expected;
  head->sure = sick ? head->sure + 1 : 0;
  if (sick && head->sure < kWindowsSick) return;
  set("overconfident", place, phase.seen, sick,
      fmt::format(
          "{} of {} were predicted with more than {} certainty and came out the other way; "
          "the logits have blown up: lower the learning rates (lr) or init_scale, and bring "
          "dense inputs to a size near 1",
          percent(w.sure_wrong / n), counted_windows(w.examples), 1 - kSureWithin));
}

void TrainingGuard::judge_layer(const Place& place, const Phase& phase, Layer* layer) {
  if (layer->pieces == 0 || layer->units < kUnitsMin * layer->pieces) return;
  const double share = layer->dead / layer->units;
  const bool sick = share >= kDeadShare;
  layer->windows = sick ? layer->windows + 1 : 0;
  if (sick && layer->windows < kWindowsSick) return;
  set("dead_units", place, phase.seen, sick,
      fmt::format(
          "{:.0f} of {:.0f} units behind the relu answer no example; a step was too large or "
          "their bias began far below 0: lower the learning rate of dense_optimizer, begin "
          "biases at 0, or use activation leaky_relu",
          layer->dead / layer->pieces, layer->units / layer->pieces));
}

// Where there is no constant to compare with: a loss far above what it was.
void TrainingGuard::judge_loss(uint32_t number_of, Phase* phase) {
  const HealthPiece& w = phase->window;
  if (!phase->heads.empty() || w.batches < 2) return;
  const double k = number(w.batches), mean = w.loss / number(w.examples);
  if (mean <= 0) return;
  if (!phase->best_loss || mean < *phase->best_loss) phase->best_loss = mean;
  const double variance = std::max(0.0, w.loss_squares / k - mean * mean);
  const double error = std::sqrt(variance / k);
  const bool sick = mean > kRises * *phase->best_loss && mean - *phase->best_loss > 6 * error;
  phase->rises = sick ? phase->rises + 1 : 0;
  if (sick && phase->rises < kWindowsSick) return;
  set("loss_rises", {number_of, "", "head"}, phase->seen, sick,
      fmt::format("the loss is {:.5g} and was {:.5g} at its best; the model diverges: lower the "
                  "learning rates (lr), and resume from an older checkpoint",
                  mean, *phase->best_loss));
}

void TrainingGuard::judge_norm(uint32_t number_of, Phase* phase) {
  const HealthPiece& w = phase->window;
  if (w.norms == 0 || w.norm <= 0) return;
  double loss = 0, constant = 0;
  for (const auto& [name, head] : phase->heads) {
    loss += head.window.loss;
    constant += head.window.constant;
  }
  const bool judged = constant > 0;
  const double badness = judged ? loss / constant : w.loss / number(w.examples);
  if (badness <= 0) return;
  const double norm = w.norm / number(w.norms);
  if (!phase->best_badness || badness < *phase->best_badness) phase->best_badness = badness;
  if (!phase->least_norm || norm < *phase->least_norm) phase->least_norm = norm;
  const bool sick = norm > kNormTimes * *phase->least_norm &&
                    badness > kBlowWorse * *phase->best_badness && (!judged || badness > 1);
  phase->blows = sick ? phase->blows + 1 : 0;
  if (sick && phase->blows < kWindowsSick) return;
  set("gradient_blow_up", {number_of, "", "head"}, phase->seen, sick,
      fmt::format(
          "the norm of the gradient is {:.3g} and was {:.3g}, and the loss has grown with it; "
          "the model diverges: lower the learning rates (lr), or set clip_norm of "
          "dense_optimizer",
          norm, *phase->least_norm));
}

std::vector<TrainingWarning> TrainingGuard::tested(std::span<const TestedHead> heads) {
  begun_.clear();
  const auto is_log_loss = [](const Head& head) {
    const HeadHealth& latest = head.windows.empty() ? head.window : head.windows.back();
    return latest.examples > 0 && latest.kind == HeadKind::kLogLoss;
  };
  for (const TestedHead& head : heads) {
    if (!head.label_mean) continue;
    const auto named = std::find(phases_.begin(), phases_.end(), head.phase);
    const auto at = static_cast<uint32_t>(named == phases_.end() ? 0 : named - phases_.begin());
    const Place place{at, head.head, "head"};
    const double ones = head.examples * *head.label_mean, zeros = head.examples - ones;
    if (ones < kTestClassMin || zeros < kTestClassMin) continue;
    const auto phase = state_.find(at);
    const uint64_t seen = phase == state_.end() ? 0 : phase->second.seen;
    if (phase != state_.end() && phase->second.batches < kStartBatches) continue;  // too short
    const double noise = 3 * std::sqrt((head.examples + 1) / (12 * ones * zeros));
    if (head.auc && noise <= kTestErrorMax)
      set("test_auc_of_chance", place, seen, *head.auc < 0.5 + noise,
          fmt::format(
              "the test AUC is {:.5f}, no better than the 0.5 of chance (to be told from it "
              "by {:.0f} examples it must be above {:.5f}); the model has learnt nothing "
              "that holds for data.test: check that its labels and columns are those of "
              "data.train, then the learning rates (lr)",
              *head.auc, head.examples, 0.5 + noise));
    // Of other losses the predictions need not be rates.
    const bool rates = phase != state_.end() && phase->second.heads.contains(head.head) &&
                       is_log_loss(phase->second.heads.at(head.head));
    const double constant = entropy(*head.label_mean);
    const double margin =
        std::max(0.01 * constant, 3 * std::sqrt(std::min(ones, zeros)) / head.examples);
    if (head.log_loss && rates)
      set("test_worse_than_constant", place, seen, *head.log_loss > constant + margin,
          fmt::format("the test log loss is {:.5f}, where always predicting the mean of the labels "
                      "costs {:.5f}; the model diverged, learnt the training data by heart, or "
                      "data.test is other data: lower the learning rates (lr) or epochs, and "
                      "compare data.train and data.test with flux data stats",
                      *head.log_loss, constant));
  }
  std::vector<TrainingWarning> out;
  for (const size_t at : begun_) out.push_back(warnings_[at]);
  return out;
}

void TrainingGuard::set(const char* id, const Place& place, uint64_t examples, bool sick,
                        const std::string& text) {
  const std::string phase = phases_.size() > 1 ? phases_[place.phase] : "";
  TrainingWarning* last = nullptr;
  uint32_t times = 0;
  for (TrainingWarning& w : warnings_) {
    if (w.id != id || w.phase != phase || w.part != place.part) continue;
    last = &w;
    ++times;
  }
  if (!sick) {
    if (last != nullptr) last->active = false;
    return;
  }
  if (last != nullptr && (last->active || times >= kTimesMax)) {
    last->active = true;
    return;
  }
  if (warnings_.size() >= kWarningsMax) return;
  begun_.push_back(warnings_.size());
  warnings_.push_back(
      {id, phase, place.part,
       place.part.empty() ? text : fmt::format("{} {}: {}", place.kind, place.part, text), examples,
       true});
}

}  // namespace flux
