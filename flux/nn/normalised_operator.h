// NormalisedOperator<F>: the whole of an operator that computes each number from x and from x
// normalised over the batch (u), with trainable vectors of its own: batch_norm, dice.
//
// F has, for one feature (`own` are its trainable numbers, those of F::kOwn vectors):
//   using Own = std::array<float, F::kOwn>;
//   template <typename T> static T value(const std::array<T, kOwn>& own, T x, T u);
//   static float direct(const Own&, float x, float u, float dy);    // d loss / dx, but through u
//   static float through(const Own&, float x, float u, float dy);   // d loss / du
//   static Own own_gradient(const Own&, float x, float u, float dy);
// value() runs in float for the net and in double as the reference. The vectors come first among
// the node's parameters, the summaries of nn/batch_statistics.h follow; `epsilon` and `decay` are
// attributes. The loops vectorise when F's functions have no branches but choices.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "flux/nn/attribute_specs.h"
#include "flux/nn/batch_statistics.h"
#include "flux/nn/operator.h"

namespace flux {

// The loops over the features of one example. Functions with restricted pointers, as compilers
// vectorise those alone.
template <typename F>
struct NormalisedRow {
  const float *own, *mean, *factor;  // own: [kOwn][width]
  const double *exact_mean, *exact_factor;
  uint32_t width;

  typename F::Own own_of(uint32_t c) const {
    typename F::Own one;
    for (size_t k = 0; k < F::kOwn; ++k) one[k] = own[k * width + c];
    return one;
  }
  float normal(uint32_t c, float x) const { return (x - mean[c]) * factor[c]; }
  double exact_normal(uint32_t c, float x) const {
    return (static_cast<double>(x) - exact_mean[c]) * exact_factor[c];
  }

  static void forward(const NormalisedRow row, const float* __restrict x, float* __restrict y) {
    for (uint32_t c = 0; c < row.width; ++c)
      y[c] = F::value(row.own_of(c), x[c], row.normal(c, x[c]));
  }
  // What gets to u, alone and times u. In double, as in backward(): what the mean and the variance
  // take back cancels nearly all of it where few examples differ little, and 1/sqrt(epsilon) times
  // the rounding would be left.
  static void add_through(const NormalisedRow row, const float* __restrict x,
                          const float* __restrict dy, double* __restrict sums,
                          double* __restrict along) {
    for (uint32_t c = 0; c < row.width; ++c) {
      const double u = row.exact_normal(c, x[c]), g = row.through(c, x[c], u, dy[c]);
      sums[c] += g;
      along[c] += g * u;
    }
  }
  double through(uint32_t c, float x, double u, float dy) const {
    return static_cast<double>(F::through(own_of(c), x, static_cast<float>(u), dy));
  }
  // The gradients of the own vectors from k on, to `to` and the vectors behind it.
  template <size_t k>
  static void add_own(const NormalisedRow row, const float* __restrict x,
                      const float* __restrict dy, float* __restrict to) {
    for (uint32_t c = 0; c < row.width; ++c)
      to[c] += std::get<k>(F::own_gradient(row.own_of(c), x[c], row.normal(c, x[c]), dy[c]));
    if constexpr (k + 1 < F::kOwn) add_own<k + 1>(row, x, dy, to + row.width);
  }
  // `common` is what the batch's mean and variance take back.
  static void backward(const NormalisedRow row, const float* __restrict x,
                       const float* __restrict dy, const double* __restrict sums,
                       const double* __restrict along, double share, float* __restrict dx) {
    for (uint32_t c = 0; c < row.width; ++c) {
      const double u = row.exact_normal(c, x[c]);
      const double common = (sums[c] + u * along[c]) * share;
      const double back = row.exact_factor[c] * (row.through(c, x[c], u, dy[c]) - common);
      dx[c] =
          F::direct(row.own_of(c), x[c], static_cast<float>(u), dy[c]) + static_cast<float>(back);
    }
  }
};

template <typename F>
class NormalisedKernel : public Kernel {
 public:
  explicit NormalisedKernel(const KernelArgs& args)
      : in_(args.inputs[0]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        statistics_(args, F::kOwn, args.node.float_attr("epsilon")),
        offset_(args.graph.parameters()[args.node.parameters[0]].offset),
        own_(F::kOwn * out_.width),
        x_row_(out_.width),
        dy_row_(out_.width),
        row_(out_.width),
        sums_(out_.width),
        along_(out_.width) {}

  void set_parameters(const float* flat) override {
    std::copy_n(flat + offset_, own_.size(), own_.data());
    statistics_.set_parameters(flat);
  }
  void forward(Step& step) override {
    statistics_.use(step);
    const Loops loops = make_loops();
    for (uint32_t b = 0; b < step.batch; ++b) {
      Loops::forward(loops, read_row(in_.value, b, x_row_.data()), row_.data());
      write_row(out_, b, row_.data(), false);
    }
  }
  void backward(Step& step) override {
    statistics_.write_summaries(step);
    sum_gradients(step);
    if (!in_.gradient) return;
    const Loops loops = make_loops();
    const double share = 1.0 / step.batch;
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_row_.data());
      const float* dy = read_row(out_gradient_, b, dy_row_.data());
      Loops::backward(loops, x, dy, sums_.data(), along_.data(), share, row_.data());
      write_row(in_.gradient, b, row_.data(), in_.add);
    }
  }

 private:
  using Loops = NormalisedRow<F>;
  Loops make_loops() const {
    return {own_.data(),
            statistics_.mean(),
            statistics_.factor(),
            statistics_.exact_mean(),
            statistics_.exact_factor(),
            out_.width};
  }
  void sum_gradients(const Step& step) {
    const Loops loops = make_loops();
    float* own_gradient = step.gradients->parameters + offset_;
    std::fill_n(own_gradient, own_.size(), 0.0F);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    std::fill(along_.begin(), along_.end(), 0.0);
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_row_.data());
      const float* dy = read_row(out_gradient_, b, dy_row_.data());
      Loops::add_through(loops, x, dy, sums_.data(), along_.data());
      Loops::template add_own<0>(loops, x, dy, own_gradient);
    }
  }

  KernelInput in_;
  Tensor out_, out_gradient_;
  BatchStatistics statistics_;
  size_t offset_;
  std::vector<float> own_, x_row_, dy_row_, row_;
  std::vector<double> sums_, along_;
};

template <typename F>
void normalised_reference(const ReferenceCall& call) {
  const uint32_t width = call.node.width;
  for (uint32_t c = 0; c < width; ++c) {
    const auto column = normalised_column(call, c, call.node.float_attr("epsilon"));
    std::array<double, F::kOwn> own;
    for (size_t k = 0; k < F::kOwn; ++k) own[k] = call.parameter(k)[c];
    for (uint32_t b = 0; b < call.batch; ++b) {
      const size_t at = static_cast<size_t>(b) * width + c;
      call.output[at] = F::value(own, call.inputs[0][at], column[b]);
    }
  }
}

// `infer` adds F's vectors and then the summaries.
template <typename F>
OperatorDef normalised_operator(const char* name, const char* doc, Status (*infer)(InferContext&),
                                double epsilon) {
  OperatorDef def;
  def.info = {
      name,
      doc,
      1,
      1,
      {float_attribute("epsilon", epsilon, 1e-12, 1, "added to the variance"),
       float_attribute("decay", 0.99, 0, 1,
                       "what the averages keep at each batch; 1: they are of all batches")}};
  def.infer = infer;
  def.reference = normalised_reference<F>;
  def.whole_batch = true;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new NormalisedKernel<F>(args));
  };
  return def;
}

}  // namespace flux
