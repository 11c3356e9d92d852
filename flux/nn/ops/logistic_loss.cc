// logistic_loss: mean over the batch of log(1 + exp(z)) - y z, for logit z and label y.
#include <algorithm>
#include <cmath>
#include <vector>

#include "flux/nn/operator.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node& logit = *context.inputs[0];
  const Node& label = *context.inputs[1];
  if (label.name != "label" || logit.name == "label")
    return context.fail(
        fmt::format("inputs must be the logit and then 'label', got {}", context.shapes()));
  if (logit.width != 1)
    return context.fail(
        fmt::format("the logit must be [B,1], got {}; end the model with an fc of "
                    "units: 1",
                    context.shapes()));
  context.node.width = 1;
  return Status::ok();
}

class LogisticLossKernel : public Kernel {
 public:
  explicit LogisticLossKernel(const KernelArgs& args)
      : logit_(args.inputs[0]), z_(args.batch_max), p_(args.batch_max), loss_(args.batch_max) {}

  void forward(Step& step) override {
    const uint32_t n = step.batch;
    const float* labels = step.input->labels;
    for (uint32_t b = 0; b < n; ++b) {
      float scratch;
      z_[b] = *read_row(logit_.value, b, &scratch);
    }
    const float* z = z_.data();
    float* p = p_.data();
    for (uint32_t b = 0; b < n; ++b) p[b] = sigmoid(z[b]);
    if (step.predictions != nullptr)
      for (uint32_t b = 0; b < n; ++b) step.predictions[b] = p[b];
    if (labels == nullptr) return;
    float* loss = loss_.data();
    for (uint32_t b = 0; b < n; ++b) loss[b] = logistic_loss_of(z[b], labels[b]);
    double sum = 0;
    for (uint32_t b = 0; b < n; ++b) sum += loss[b];
    step.loss_sum = sum;
  }

  void backward(Step& step) override {
    if (!logit_.gradient) return;
    const float scale = 1.0F / static_cast<float>(step.batch);
    for (uint32_t b = 0; b < step.batch; ++b) {
      const float g = (p_[b] - step.input->labels[b]) * scale;
      write_row(logit_.gradient, b, &g, logit_.add);
    }
  }

 private:
  KernelInput logit_;
  std::vector<float> z_, p_, loss_;
};

void reference(const ReferenceCall& call) {
  for (uint32_t b = 0; b < call.batch; ++b) {
    const double z = call.inputs[0][b], y = call.inputs[1][b];
    call.output[b] = std::log1p(std::exp(-std::fabs(z))) + std::max(z, 0.0) - y * z;
  }
}

}  // namespace

OperatorDef operator_logistic_loss() {
  OperatorDef def;
  def.info.name = "logistic_loss";
  def.info.doc = "Mean log loss of a logit [B,1] against 'label'; predictions are its sigmoid.";
  def.info.inputs_min = def.info.inputs_max = 2;
  def.infer = infer;
  def.reference = reference;
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new LogisticLossKernel(args));
  };
  def.is_loss = true;
  return def;
}

}  // namespace flux
