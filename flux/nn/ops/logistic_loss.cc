// logistic_loss: mean over the batch of w (log(1 + exp(z)) - y z), for logit z, label y and the
// example's weight w (1 if it is not given).
#include <algorithm>
#include <cmath>
#include <vector>

#include "flux/nn/loss_inputs.h"
#include "flux/nn/operator.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  FLUX_RETURN_IF_ERROR(check_loss_inputs(context, 1));
  context.node.width = 1;
  return Status::ok();
}

class LogisticLossKernel : public Kernel {
 public:
  explicit LogisticLossKernel(const KernelArgs& args)
      : logit_(args.inputs[0]),
        weights_(args, 2),
        label_(static_cast<size_t>(label_column(args.graph.nodes()[args.node.inputs[1]]))),
        head_(args.head),
        head_weight_(args.head_weight),
        p_(args.memory.allocate_array<float>(args.batch_max)) {}

  void forward(Step& step) override {
    for_sum_rows(step.first, step.end, [&](uint32_t begin, uint32_t end) {
      float z[kSumRows];
      const uint32_t n = end - begin;
      for (uint32_t i = 0; i < n; ++i) {
        float scratch;
        z[i] = *read_row(logit_.value, begin + i, &scratch);
      }
      float* p = p_ + begin;
      for (uint32_t i = 0; i < n; ++i) p[i] = sigmoid(z[i]);
      if (float* predictions = step.head_predictions(head_)) std::copy_n(p, n, predictions + begin);
      if (const float* labels = labels_of(step))
        step.set_loss(head_, begin, loss_of(z, labels + begin, begin, n));
    });
  }

  void backward(Step& step) override {
    if (!logit_.gradient) return;
    const float scale = head_weight_ / static_cast<float>(step.batch);
    const float* labels = labels_of(step);
    for (uint32_t b = step.first; b < step.end; ++b) {
      const float g = (p_[b] - labels[b]) * scale * weights_.of(b);
      write_row(logit_.gradient, b, &g, logit_.add);
    }
  }

 private:
  const float* labels_of(const Step& step) const {
    return step.input->labels == nullptr ? nullptr : step.input->labels + label_ * step.batch;
  }

  // The sum over the `n` rows from `begin` on.
  double loss_of(const float* z, const float* labels, uint32_t begin, uint32_t n) const {
    float loss[kSumRows];
    for (uint32_t i = 0; i < n; ++i) loss[i] = logistic_loss_of(z[i], labels[i]);
    for (uint32_t i = 0; i < n && weights_; ++i) loss[i] *= weights_.of(begin + i);
    double sum = 0;
    for (uint32_t i = 0; i < n; ++i) sum += loss[i];
    return sum;
  }

  KernelInput logit_;
  LossWeights weights_;
  size_t label_;
  uint32_t head_;
  float head_weight_;
  float* p_;  // of each row
};

void reference(const ReferenceCall& call) {
  for (uint32_t b = 0; b < call.batch; ++b) {
    const double z = call.inputs[0][b], y = call.inputs[1][b];
    const double loss = std::log1p(std::exp(-std::fabs(z))) + std::max(z, 0.0) - y * z;
    call.output[b] = loss_weight(call, 2, b) * loss;
    call.predictions[b] = 1 / (1 + std::exp(-z));
  }
}

}  // namespace

OperatorDef operator_logistic_loss() {
  OperatorDef def;
  def.info.name = "logistic_loss";
  def.info.doc =
      "Mean log loss of a logit [B,1] against a label, by an optional weight [B,1] of each "
      "example; "
      "predictions are the logit's sigmoid.";
  def.info.inputs_min = 2;
  def.info.inputs_max = 3;
  def.info.attrs = {loss_weight_attribute()};
  def.infer = infer;
  def.reference = reference;
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new LogisticLossKernel(args));
  };
  def.is_loss = true;
  def.label_input = 1;
  def.info.probability_input = 1;
  return def;
}

}  // namespace flux
