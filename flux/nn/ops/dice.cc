// dice: DIN's activation, p x + (1 - p) slope x with a trainable slope for each feature, where p is
// the sigmoid of x normalised over the batch (mean and variance of this batch in training, the
// summaries of nn/batch_statistics.h in prediction).
#include "flux/nn/attribute_specs.h"
#include "flux/nn/batch_statistics.h"
#include "flux/nn/row_operator.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  const int64_t width = context.node.width;
  add_constant_parameter(context, "slope", {width}, 0.25F);
  add_summaries(context, width, static_cast<float>(context.node.float_attr("decay")));
  return Status::ok();
}

class DiceKernel : public Kernel {
 public:
  explicit DiceKernel(const KernelArgs& args)
      : in_(args.inputs[0]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        statistics_(args, 1, args.node.float_attr("epsilon")),
        offset_(args.graph.parameters()[args.node.parameters[0]].offset),
        slope_(out_.width),
        x_row_(out_.width),
        row_(out_.width),
        sums_(out_.width),
        along_(out_.width) {}

  void set_parameters(const float* flat) override {
    std::copy_n(flat + offset_, out_.width, slope_.data());
    statistics_.set_parameters(flat);
  }
  void forward(Step& step) override {
    statistics_.use(step);
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_row_.data());
      for (uint32_t c = 0; c < out_.width; ++c) {
        const float p = sigmoid(statistics_.normal(c, x[c]));
        row_[c] = x[c] * (p + slope_[c] * (1.0F - p));
      }
      write_row(out_, b, row_.data(), false);
    }
  }
  void backward(Step& step) override {
    statistics_.write_summaries(step);
    sum_gradients(step);
    if (!in_.gradient) return;
    const float share = 1.0F / static_cast<float>(step.batch);
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_row_.data());
      const float* dy = read_row(out_gradient_, b, row_.data());
      for (uint32_t c = 0; c < out_.width; ++c) {
        const float normal = statistics_.normal(c, x[c]), p = sigmoid(normal);
        const float common = (sums_[c] + normal * along_[c]) * share;
        row_[c] = dy[c] * (p + slope_[c] * (1.0F - p)) +
                  statistics_.factor(c) * (gate_gradient(c, x[c], p, dy[c]) - common);
      }
      write_row(in_.gradient, b, row_.data(), in_.add);
    }
  }

 private:
  // Of the normalised x, through p.
  float gate_gradient(uint32_t c, float x, float p, float dy) const {
    return dy * x * (1.0F - slope_[c]) * p * (1.0F - p);
  }
  // Over the batch: what gets to the normalised x, alone and times that; and the slope's gradient.
  void sum_gradients(const Step& step) {
    float* dslope = step.gradients->parameters + offset_;
    std::fill_n(dslope, out_.width, 0.0F);
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    std::fill(along_.begin(), along_.end(), 0.0F);
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_row_.data());
      const float* dy = read_row(out_gradient_, b, row_.data());
      for (uint32_t c = 0; c < out_.width; ++c) {
        const float normal = statistics_.normal(c, x[c]), p = sigmoid(normal);
        const float g = gate_gradient(c, x[c], p, dy[c]);
        sums_[c] += g;
        along_[c] += g * normal;
        dslope[c] += dy[c] * x[c] * (1.0F - p);
      }
    }
  }

  KernelInput in_;
  Tensor out_, out_gradient_;
  BatchStatistics statistics_;
  size_t offset_;
  std::vector<float> slope_, x_row_, row_, sums_, along_;
};

void reference(const ReferenceCall& call) {
  const uint32_t width = call.node.width;
  for (uint32_t c = 0; c < width; ++c) {
    const auto column = normalised_column(call, c, call.node.float_attr("epsilon"));
    for (uint32_t b = 0; b < call.batch; ++b) {
      const double p = sigmoid(column[b]), x = call.inputs[0][b * width + c];
      call.output[b * width + c] = p * x + (1 - p) * call.parameter(0)[c] * x;
    }
  }
}

}  // namespace

OperatorDef operator_dice() {
  OperatorDef def;
  def.info = {"dice",
              "p x + (1 - p) slope x, where p is the sigmoid of x normalised over the batch; a "
              "trainable slope for each feature.",
              1,
              1,
              {float_attribute("epsilon", 1e-8, 1e-12, 1, "added to the variance"),
               float_attribute("decay", 0.99, 0, 1, "what the averages keep at each batch")}};
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new DiceKernel(args));
  };
  return def;
}

}  // namespace flux
