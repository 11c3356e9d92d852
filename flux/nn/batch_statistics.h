// BatchStatistics: mean and variance of each feature over the batch, for operators that normalise
// by them (nn/normalised_operator.h), and the summaries that prediction uses instead.
//
// Training normalises by the batch's own mean and variance. Beside that three summaries
// (nn/graph.h) per feature take in the batch: how many examples, their sum, the sum of their
// squares; with a decay below 1 they forget, so prediction normalises by a moving average that does
// not depend on how examples meet in batches. Part of a kernel: one thread.
#pragma once

#include <cmath>
#include <vector>

#include "flux/nn/operator.h"

namespace flux {

// Adds the summaries "count", "sum" and "squares" of `width` features: mean 0, variance 1 at first.
inline void add_summaries(InferContext& context, int64_t width, float decay) {
  const char* names[] = {"count", "sum", "squares"};
  for (size_t i = 0; i < 3; ++i) {
    Parameter& summary = context.add_parameter(names[i], {width}, 0);
    summary.init = {InitKind::kConstant, i == 1 ? 0.0F : 1.0F};
    summary.update = UpdateKind::kSummary;
    summary.decay = decay;
  }
}

class BatchStatistics {
 public:
  // `first` is the place of "count" among the node's parameters.
  BatchStatistics(const KernelArgs& args, size_t first, double epsilon)
      : in_(args.inputs[0].value),
        offset_(args.graph.parameters()[args.node.parameters[first]].offset),
        epsilon_(static_cast<float>(epsilon)),
        mean_(in_.width),
        factor_(in_.width),
        kept_mean_(in_.width),
        kept_factor_(in_.width),
        exact_mean_(in_.width),
        exact_factor_(in_.width),
        sums_(in_.width),
        squares_(in_.width),
        row_(in_.width) {}

  void set_parameters(const float* flat) {
    const float *count = flat + offset_, *sum = count + in_.width, *squares = sum + in_.width;
    for (uint32_t c = 0; c < in_.width; ++c) {
      kept_mean_[c] = sum[c] / count[c];
      const float variance = squares[c] / count[c] - kept_mean_[c] * kept_mean_[c];
      kept_factor_[c] = 1.0F / std::sqrt(std::max(variance, 0.0F) + epsilon_);
    }
  }
  // Of this batch in training, else of the summaries.
  void use(const Step& step) {
    if (step.gradients == nullptr) {
      mean_ = kept_mean_;
      factor_ = kept_factor_;
      return;
    }
    sum_up(step.batch);
    for (uint32_t c = 0; c < in_.width; ++c) {
      const double mean = sums_[c] / step.batch;
      const double variance = std::max(squares_[c] / step.batch - mean * mean, 0.0);
      exact_mean_[c] = mean;
      exact_factor_[c] = 1.0 / std::sqrt(variance + static_cast<double>(epsilon_));
      mean_[c] = static_cast<float>(mean);
      factor_[c] = static_cast<float>(exact_factor_[c]);
    }
  }
  // Normalised is (x - mean) * factor; good until the next use().
  const float* mean() const { return mean_.data(); }
  const float* factor() const { return factor_.data(); }
  // The same before rounding, of the last batch trained.
  const double* exact_mean() const { return exact_mean_.data(); }
  const double* exact_factor() const { return exact_factor_.data(); }
  // What the summaries take in, where their gradients go.
  void write_summaries(const Step& step) const {
    float *count = step.gradients->parameters + offset_, *sum = count + in_.width;
    for (uint32_t c = 0; c < in_.width; ++c) {
      count[c] = static_cast<float>(step.batch);
      sum[c] = static_cast<float>(sums_[c]);
      sum[in_.width + c] = static_cast<float>(squares_[c]);
    }
  }

 private:
  void sum_up(uint32_t batch) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    std::fill(squares_.begin(), squares_.end(), 0.0);
    for (uint32_t b = 0; b < batch; ++b) {
      const float* x = read_row(in_, b, row_.data());
      for (uint32_t c = 0; c < in_.width; ++c) {
        sums_[c] += static_cast<double>(x[c]);
        squares_[c] += static_cast<double>(x[c]) * static_cast<double>(x[c]);
      }
    }
  }

  Tensor in_;
  size_t offset_;
  float epsilon_;
  std::vector<float> mean_, factor_, kept_mean_, kept_factor_;
  std::vector<double> exact_mean_, exact_factor_, sums_, squares_;
  std::vector<float> row_;
};

// For references: column c of a batch, normalised as in training.
inline std::vector<double> normalised_column(const ReferenceCall& call, uint32_t c,
                                             double epsilon) {
  const uint32_t width = call.node.width;
  std::vector<double> column(call.batch);
  double mean = 0, variance = 0;
  for (uint32_t b = 0; b < call.batch; ++b) {
    column[b] = call.inputs[0][b * width + c];
    mean += column[b] / call.batch;
  }
  for (const double x : column) variance += (x - mean) * (x - mean) / call.batch;
  for (double& x : column) x = (x - mean) / std::sqrt(variance + epsilon);
  return column;
}

}  // namespace flux
