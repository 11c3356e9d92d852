// in_batch_softmax: the sampled softmax of two towers. Example i's vector a_i should find its own
// b_i among the vectors b_j of all examples of the batch: -log softmax over j of a_i b_j /
// temperature, at j = i.
//
// The scores of all pairs are one matrix product, as a fully connected layer whose weights are the
// vectors b of this batch.
#include <algorithm>
#include <cmath>

#include "flux/nn/fc_products.h"
#include "flux/nn/inner_fc.h"
#include "flux/nn/row_loss.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

constexpr uint32_t kBatchMax = 8192;

Status infer(InferContext& context) {
  if (context.inputs[0]->width != context.inputs[1]->width)
    return context.fail(fmt::format("both towers must end in vectors [B,d] of one width, got {}",
                                    context.shapes()));
  FLUX_RETURN_IF_ERROR(check_loss_weight(context, 2));
  context.node.width = 1;
  return Status::ok();
}

class InBatchSoftmaxKernel : public Kernel {
 public:
  explicit InBatchSoftmaxKernel(const KernelArgs& args)
      : a_(args.inputs[0]),
        b_(args.inputs[1]),
        weights_(args, 2),
        head_(args.head),
        head_weight_(args.head_weight),
        by_(1.0F / static_cast<float>(args.node.float_attr("temperature"))),
        width_(a_.value.width),
        batch_max_(args.batch_max),
        scores_(allocate_rows(args, batch_max_, DType::kF32)),
        scores_gradient_(allocate_rows(args, batch_max_, a_.value.type)),
        turned_(static_cast<size_t>(width_) * batch_max_),
        zeros_(batch_max_),
        sums_(batch_max_),
        row_(std::max(width_, batch_max_)) {}

  Status make(const KernelArgs& args) {
    if (batch_max_ > kBatchMax)
      return invalid("node '{}' (in_batch_softmax): batches may have at most {} examples, not {}",
                     args.node.name, kBatchMax, batch_max_);
    FcShape shape;
    shape.x = a_.value;
    shape.y = scores_;
    shape.dz = scores_gradient_;
    shape.dx = a_.gradient;
    shape.dx_add = a_.add;
    shape.batch_max = batch_max_;
    FLUX_ASSIGN_OR_RETURN(products_, make_products(shape, args.memory));
    return Status::ok();
  }

  void forward(Step& step) override {
    turn_b(step.batch);
    products_->set_all_parameters(turned_.data(), zeros_.data());
    products_->forward_all(step.batch);
    float* predictions = step.head_predictions(head_);
    double sum = 0;
    for (uint32_t i = 0; i < step.batch; ++i) {
      float* z = scores_.f32(i);
      if (predictions != nullptr) predictions[i] = sigmoid(z[i]);
      const float top = *std::max_element(z, z + step.batch), own = z[i];
      for (uint32_t j = 0; j < step.batch; ++j) z[j] = exp_of(z[j] - top);
      const float total = sum_of(z, step.batch);
      for (uint32_t j = 0; j < step.batch; ++j) z[j] /= total;
      sum += (top + std::log(total) - own) * weights_.of(i);
    }
    step.set_loss(head_, 0, sum);
  }

  void backward(Step& step) override {
    std::fill(row_.begin(), row_.end(), 0.0F);
    for (uint32_t i = 0; i < step.batch; ++i) {
      const float* p = scores_.f32(i);
      const float scale = head_weight_ / static_cast<float>(step.batch) * weights_.of(i);
      for (uint32_t j = 0; j < step.batch; ++j) row_[j] = (p[j] - (i == j ? 1.0F : 0.0F)) * scale;
      write_row(scores_gradient_, i, row_.data(), false);
    }
    products_->backward_weights_all(step.batch, turned_.data(), sums_.data());
    if (a_.gradient) products_->backward_data_all(step.batch);
    if (!b_.gradient) return;
    for (uint32_t j = 0; j < step.batch; ++j) {
      for (uint32_t c = 0; c < width_; ++c)
        row_[c] = turned_[static_cast<size_t>(c) * batch_max_ + j] * by_;
      write_row(b_.gradient, j, row_.data(), b_.add);
    }
  }

 private:
  // The weights [width][batch_max]: b / temperature, its examples as columns.
  void turn_b(uint32_t batch) {
    std::fill(turned_.begin(), turned_.end(), 0.0F);
    for (uint32_t j = 0; j < batch; ++j) {
      const float* b = read_row(b_.value, j, row_.data());
      for (uint32_t c = 0; c < width_; ++c)
        turned_[static_cast<size_t>(c) * batch_max_ + j] = b[c] * by_;
    }
  }

  KernelInput a_, b_;
  LossWeights weights_;
  uint32_t head_;
  float head_weight_, by_;
  uint32_t width_, batch_max_;
  Tensor scores_, scores_gradient_;
  std::vector<float> turned_, zeros_, sums_, row_;
  std::unique_ptr<FcProducts> products_;
};

void reference(const ReferenceCall& call) {
  const uint32_t width = call.input_width(0);
  const double temperature = call.node.float_attr("temperature");
  for (uint32_t i = 0; i < call.batch; ++i) {
    double sum = 0, own = 0;
    for (uint32_t j = 0; j < call.batch; ++j) {
      double score = 0;
      for (uint32_t c = 0; c < width; ++c)
        score += call.inputs[0][i * width + c] * call.inputs[1][j * width + c];
      sum += std::exp(score / temperature);
      if (i == j) own = score / temperature;
    }
    call.output[i] = (std::log(sum) - own) * loss_weight(call, 2, i);
    call.predictions[i] = sigmoid(own);
  }
}

}  // namespace

OperatorDef operator_in_batch_softmax() {
  OperatorDef def = loss_def(
      "in_batch_softmax",
      "Softmax over the batch of two towers' vectors [B,d]: each finds its own among all; an "
      "optional weight [B,1]; predictions are the sigmoid of the pair's score.",
      2, false, infer,
      {float_attribute("temperature", 1, 1e-3, 1e3, "what the scores are divided by")});
  def.reference = reference;
  def.whole_batch = true;
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    auto kernel = std::make_unique<InBatchSoftmaxKernel>(args);
    FLUX_RETURN_IF_ERROR(kernel->make(args));
    return std::unique_ptr<Kernel>(std::move(kernel));
  };
  return def;
}

}  // namespace flux
