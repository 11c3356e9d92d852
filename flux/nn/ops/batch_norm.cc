// batch_norm: each feature brought to mean 0 and variance 1 over the batch (in prediction: by the
// summaries of nn/batch_statistics.h), then scaled and moved by trainable vectors.
#include "flux/nn/attribute_specs.h"
#include "flux/nn/batch_statistics.h"
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  const int64_t width = context.node.width;
  add_constant_parameter(context, "scale", {width}, 1.0F);
  add_constant_parameter(context, "bias", {width}, 0.0F);
  add_summaries(context, width, static_cast<float>(context.node.float_attr("decay")));
  return Status::ok();
}

class BatchNormKernel : public Kernel {
 public:
  explicit BatchNormKernel(const KernelArgs& args)
      : in_(args.inputs[0]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        statistics_(args, 2, args.node.float_attr("epsilon")),
        offset_(args.graph.parameters()[args.node.parameters[0]].offset),
        scale_(out_.width),
        bias_(out_.width),
        x_row_(out_.width),
        row_(out_.width),
        sums_(out_.width),
        along_(out_.width) {}

  void set_parameters(const float* flat) override {
    std::copy_n(flat + offset_, out_.width, scale_.data());
    std::copy_n(flat + offset_ + out_.width, out_.width, bias_.data());
    statistics_.set_parameters(flat);
  }
  void forward(Step& step) override {
    statistics_.use(step);
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_row_.data());
      for (uint32_t c = 0; c < out_.width; ++c)
        row_[c] = statistics_.normal(c, x[c]) * scale_[c] + bias_[c];
      write_row(out_, b, row_.data(), false);
    }
  }
  void backward(Step& step) override {
    statistics_.write_summaries(step);
    sum_gradients(step.batch);
    float* flat = step.gradients->parameters + offset_;
    std::copy(along_.begin(), along_.end(), flat);
    std::copy(sums_.begin(), sums_.end(), flat + out_.width);
    if (!in_.gradient) return;
    const float share = 1.0F / static_cast<float>(step.batch);
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float* x = read_row(in_.value, b, x_row_.data());
      const float* dy = read_row(out_gradient_, b, row_.data());
      for (uint32_t c = 0; c < out_.width; ++c) {
        const float common = (sums_[c] + statistics_.normal(c, x[c]) * along_[c]) * share;
        row_[c] = scale_[c] * statistics_.factor(c) * (dy[c] - common);
      }
      write_row(in_.gradient, b, row_.data(), in_.add);
    }
  }

 private:
  // Over the batch: sums of dy, and of dy times the normalised x.
  void sum_gradients(uint32_t batch) {
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    std::fill(along_.begin(), along_.end(), 0.0F);
    for (uint32_t b = 0; b < batch; ++b) {
      const float* x = read_row(in_.value, b, x_row_.data());
      const float* dy = read_row(out_gradient_, b, row_.data());
      for (uint32_t c = 0; c < out_.width; ++c) {
        sums_[c] += dy[c];
        along_[c] += dy[c] * statistics_.normal(c, x[c]);
      }
    }
  }

  KernelInput in_;
  Tensor out_, out_gradient_;
  BatchStatistics statistics_;
  size_t offset_;
  std::vector<float> scale_, bias_, x_row_, row_, sums_, along_;
};

void reference(const ReferenceCall& call) {
  const uint32_t width = call.node.width;
  for (uint32_t c = 0; c < width; ++c) {
    const auto column = normalised_column(call, c, call.node.float_attr("epsilon"));
    for (uint32_t b = 0; b < call.batch; ++b)
      call.output[b * width + c] = column[b] * call.parameter(0)[c] + call.parameter(1)[c];
  }
}

}  // namespace

OperatorDef operator_batch_norm() {
  OperatorDef def;
  def.info = {"batch_norm",
              "Features brought to mean 0 and variance 1 over the batch, then scale * x + bias; in "
              "prediction by moving averages.",
              1,
              1,
              {float_attribute("epsilon", 1e-5, 1e-12, 1, "added to the variance"),
               float_attribute("decay", 0.99, 0, 1, "what the averages keep at each batch")}};
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new BatchNormKernel(args));
  };
  return def;
}

}  // namespace flux
