// data_norm: each feature normalised by summaries of all data seen so far, which the batch itself
// does not move: y = (x - sum / size) * sqrt(size / squares).
//
// Three summaries per feature: size (1e4 at first), sum (0) and squares (1e4), which take in the
// batch's number of examples, the sum of x, and the sum of (x - mean)^2 + epsilon. They are
// constants to the gradient, so dx = dy * sqrt(size / squares).
#include <cmath>

#include "flux/nn/attribute_specs.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  const char* names[] = {"size", "sum", "squares"};
  for (size_t i = 0; i < 3; ++i) {
    Parameter& summary = context.add_parameter(names[i], {context.node.width}, 0);
    summary.init = {InitKind::kConstant, i == 1 ? 0.0F : 1e4F};
    summary.update = UpdateKind::kSummary;
    summary.decay = static_cast<float>(context.node.float_attr("decay"));
  }
  return Status::ok();
}

class DataNormKernel : public Kernel {
 public:
  explicit DataNormKernel(const KernelArgs& args)
      : in_(args.inputs[0]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        offset_(args.graph.parameters()[args.node.parameters[0]].offset),
        epsilon_(static_cast<float>(args.node.float_attr("epsilon"))),
        mean_(out_.width),
        factor_(out_.width),
        row_(out_.width),
        sums_(&args.memory, args.batch_max, 2UL * out_.width) {}

  void set_parameters(const float* flat) override {
    const float *size = flat + offset_, *sum = size + out_.width, *squares = sum + out_.width;
    for (uint32_t c = 0; c < out_.width; ++c) {
      mean_[c] = sum[c] / size[c];
      factor_[c] = std::sqrt(size[c] / squares[c]);
    }
  }
  void forward(Step& step) override {
    for (uint32_t b = step.first; b < step.end; ++b) {
      const float* x = read_row(in_.value, b, row_.data());
      for (uint32_t c = 0; c < out_.width; ++c) row_[c] = (x[c] - mean_[c]) * factor_[c];
      write_row(out_, b, row_.data(), false);
    }
  }
  void backward(Step& step) override {
    sum_rows(step);
    if (!in_.gradient) return;
    for (uint32_t b = step.first; b < step.end; ++b) {
      const float* dy = read_row(out_gradient_, b, row_.data());
      for (uint32_t c = 0; c < out_.width; ++c) row_[c] = dy[c] * factor_[c];
      write_row(in_.gradient, b, row_.data(), in_.add);
    }
  }

  uint32_t sum_parts(uint32_t) const override { return sums_.pieces(); }
  void sum(Step& step, uint32_t part) override {
    float* size = step.gradients->parameters + offset_;
    if (part == 0) std::fill_n(size, out_.width, static_cast<float>(step.batch));
    sums_.add_up(step.batch, part, size + out_.width);
  }

 private:
  // What the summaries take in: the sums, then the squares.
  void sum_rows(const Step& step) {
    for_sum_rows(step.first, step.end, [&](uint32_t begin, uint32_t end) {
      float *sum = sums_.clear_part(begin), *squares = sum + out_.width;
      for (uint32_t b = begin; b < end; ++b) {
        const float* x = read_row(in_.value, b, row_.data());
        for (uint32_t c = 0; c < out_.width; ++c) {
          sum[c] += x[c];
          squares[c] += (x[c] - mean_[c]) * (x[c] - mean_[c]) + epsilon_;
        }
      }
    });
  }

  KernelInput in_;
  Tensor out_, out_gradient_;
  size_t offset_;
  float epsilon_;
  std::vector<float> mean_, factor_, row_;
  RowSums sums_;
};

void reference(const ReferenceCall& call) {
  const uint32_t width = call.node.width;
  for (uint32_t b = 0; b < call.batch; ++b) {
    for (uint32_t c = 0; c < width; ++c) {
      const double size = call.parameter(0)[c], sum = call.parameter(1)[c];
      const double squares = call.parameter(2)[c];
      call.output[b * width + c] =
          (call.inputs[0][b * width + c] - sum / size) * std::sqrt(size / squares);
    }
  }
}

}  // namespace

OperatorDef operator_data_norm() {
  OperatorDef def;
  def.info = {"data_norm",
              "Features normalised by the mean and scale of all data so far, which each batch adds "
              "to; no gradient passes through those.",
              1,
              1,
              {float_attribute("epsilon", 1e-4, 0, 1, "added to each squared difference"),
               float_attribute("decay", 0.9999999, 0, 1, "what the summaries keep at each batch")}};
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new DataNormKernel(args));
  };
  return def;
}

}  // namespace flux
