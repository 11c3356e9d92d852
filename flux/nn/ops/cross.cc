// cross: one layer of a deep and cross network (DCN-v2), y = x0 * (x W + b) + x; with a rank, W is
// the product of two thin matrices.
#include <cmath>

#include "flux/base/cpu.h"
#include "flux/nn/attribute_specs.h"
#include "flux/nn/fc_products.h"
#include "flux/nn/inner_fc.h"
#include "flux/nn/row_kernels.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node &x0 = *context.inputs[0], &x = *context.inputs[1];
  if (x0.width != x.width)
    return context.fail(fmt::format(
        "the first input and the last layer must have one shape, got {}", context.shapes()));
  const int64_t n = x.width, rank = context.node.int_attr("rank");
  if (rank >= n)
    return context.fail(fmt::format("'rank' must be below the {} features (0: full), got {} for {}",
                                    n, rank, context.shapes()));
  const float range = std::sqrt(1.0F / static_cast<float>(n));
  if (rank > 0) {
    context.add_parameter("down", {n, rank}, range);
    context.add_parameter("up", {rank, n}, std::sqrt(1.0F / static_cast<float>(rank)));
  } else {
    context.add_parameter("weight", {n, n}, range);
  }
  context.add_parameter("bias", {n}, 0);
  context.node.width = x.width;
  context.node.length = x.length;
  return Status::ok();
}

// W whole, on CPUs with AVX-512 (cross_backward()): all but the backward of the product with x0
// rides on the products.
class FusedCrossKernel : public Kernel {
 public:
  // Null where the CPU, or the types of its tensors, do not allow it.
  static std::unique_ptr<Kernel> make(const KernelArgs& args) {
    const DType type = args.inputs[1].value.type;
    if (!(type == DType::kBf16 ? cpu_has_avx512_bf16() : cpu_has_avx512())) return nullptr;
    if (args.node.parameters.size() != 2 || args.inputs[0].value.type != type ||
        args.output_gradient.type != type)
      return nullptr;
    auto kernel = std::unique_ptr<FusedCrossKernel>(new FusedCrossKernel(args));
    return kernel->products_ == nullptr ? nullptr : std::move(kernel);
  }
  void set_parameters(const float* flat) override {
    if (first_) products_->set_parameters(flat + weight_, flat + bias_);
  }
  uint32_t pack_parts() const override { return products_->pack_parts(); }
  void pack(uint32_t part) override { products_->pack(part); }
  void forward(Step& step) override { products_->forward(step.first, step.end); }
  void backward(Step& step) override {
    CrossRows rows = rows_;
    rows.batch = step.rows();
    for (RowsAt* at : {&rows.dy, &rows.x0, &rows.z, &rows.dz, &rows.dx0})
      if (at->data != nullptr)
        at->data = static_cast<char*>(at->data) + step.first * at->stride * (bf16_ ? 2 : 4);
    bf16_ ? cross_backward_bf16(rows) : cross_backward_f32(rows);
    products_->keep(step.first, step.end, step.batch);
    if (has_dx_) products_->backward_data(step.first, step.end);
  }
  uint32_t sum_parts(uint32_t) const override { return products_->weight_parts(); }
  void sum(Step& step, uint32_t part) override {
    float* flat = step.gradients->parameters;
    products_->backward_weights(step.batch, part, flat + weight_, flat + bias_);
  }

 private:
  explicit FusedCrossKernel(const KernelArgs& args)
      : weight_(args.graph.parameters()[args.node.parameters[0]].offset),
        bias_(args.graph.parameters()[args.node.parameters[1]].offset),
        bf16_(args.inputs[1].value.type == DType::kBf16),
        has_dx_(args.inputs[1].gradient),
        first_(args.first == nullptr) {
    const KernelInput &x0 = args.inputs[0], &x = args.inputs[1];
    FcShape shape;
    shape.x = shape.plus = x.value;
    shape.y = args.output;
    shape.dx = x.gradient;
    shape.dx_add = x.add;
    shape.scale = x0.value;
    shape.kept = allocate_rows(args, args.output.width, x.value.type);
    shape.dz = allocate_rows(args, args.output.width, x.value.type);
    shape.dx_plus = args.output_gradient;
    shape.batch_max = args.batch_max;
    shape.members = args.members;
    if (first_)
      products_ = make_products_on(best_gemm_kernels(shape), shape, args.memory);
    else
      products_ = static_cast<const FusedCrossKernel*>(args.first)->products_;
    const auto at = [](const Tensor& t) { return RowsAt{t.data, t.stride}; };
    rows_ = {0,
             args.output.width,
             at(args.output_gradient),
             at(x0.value),
             at(shape.kept),
             at(shape.dz),
             at(x0.gradient),
             x0.gradient.width,
             x0.add};
  }

  size_t weight_, bias_;
  bool bf16_, has_dx_, first_;
  CrossRows rows_;
  std::shared_ptr<FcProducts> products_;  // of all members
};

class CrossKernel : public InnerFcs {
 public:
  explicit CrossKernel(const KernelArgs& args)
      : x0_(args.inputs[0]),
        x_(args.inputs[1]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        z_(allocate_rows(args, out_.width, x_.value.type)),
        dz_(allocate_rows(args, out_.width, x_.value.type)),
        a_(out_.width),
        b_(out_.width),
        c_(out_.width) {}

  Status make(const KernelArgs& args) {
    const auto& parameters = args.node.parameters;
    InnerFc fc{x_, z_, dz_, "none", parameters};
    fc.input.add = true;  // backward() has written x's own share by then
    if (parameters.size() == 3) {
      const auto rank = static_cast<uint32_t>(args.node.int_attr("rank"));
      fc.output = allocate_rows(args, rank, x_.value.type);
      fc.output_gradient = allocate_rows(args, rank, x_.value.type);
      fc.parameters = {parameters[0]};
      FLUX_RETURN_IF_ERROR(add_inner(args, fc));
      fc.input = {fc.output, fc.output_gradient, false, false, false};
      fc.output = z_;
      fc.output_gradient = dz_;
      fc.parameters = {parameters[1], parameters[2]};
    }
    return add_inner(args, fc);
  }
  void forward(Step& step) override {
    for (auto& fc : inner_) fc->forward(step);
    for (uint32_t b = step.first; b < step.end; ++b) {
      const float* x0 = read_row(x0_.value, b, a_.data());
      const float* x = read_row(x_.value, b, b_.data());
      const float* z = read_row(z_, b, c_.data());
      for (uint32_t c = 0; c < out_.width; ++c) c_[c] = x0[c] * z[c] + x[c];
      write_row(out_, b, c_.data(), false);
    }
  }
  void backward(Step& step) override {
    for (uint32_t b = step.first; b < step.end; ++b) {
      const float* x0 = read_row(x0_.value, b, a_.data());
      const float* z = read_row(z_, b, c_.data());
      const float* dy = read_row(out_gradient_, b, b_.data());
      for (uint32_t c = 0; c < out_.width; ++c) {
        a_[c] = dy[c] * x0[c];
        c_[c] = dy[c] * z[c];
      }
      write_row(dz_, b, a_.data(), false);
      if (x0_.gradient) write_row(x0_.gradient, b, c_.data(), x0_.add);
      if (x_.gradient) write_row(x_.gradient, b, dy, x_.add);
    }
    for (size_t i = inner_.size(); i-- > 0;) inner_[i]->backward(step);
  }

 private:
  KernelInput x0_, x_;
  Tensor out_, out_gradient_, z_, dz_;
  std::vector<float> a_, b_, c_;
};

// z = x W + b for one example.
void multiply(const double* x, const double* weight, const double* bias, size_t in, size_t units,
              double* z) {
  for (size_t u = 0; u < units; ++u) {
    z[u] = bias == nullptr ? 0 : bias[u];
    for (size_t k = 0; k < in; ++k) z[u] += x[k] * weight[k * units + u];
  }
}

void reference(const ReferenceCall& call) {
  const size_t n = call.node.width, rank = static_cast<size_t>(call.node.int_attr("rank"));
  std::vector<double> z(n), thin(rank);
  for (size_t b = 0; b < call.batch; ++b) {
    const double *x0 = call.inputs[0] + b * n, *x = call.inputs[1] + b * n;
    if (rank > 0) {
      multiply(x, call.parameter(0), nullptr, n, rank, thin.data());
      multiply(thin.data(), call.parameter(1), call.parameter(2), rank, n, z.data());
    } else {
      multiply(x, call.parameter(0), call.parameter(1), n, n, z.data());
    }
    for (size_t c = 0; c < n; ++c) call.output[b * n + c] = x0[c] * z[c] + x[c];
  }
}

}  // namespace

OperatorDef operator_cross() {
  OperatorDef def;
  def.info = {"cross",
              "One layer of a cross network (DCN-v2): x0 * (x W + b) + x, for inputs x0 and x.",
              2,
              2,
              {int_attribute("rank", 0, 0, 65536, "of W as two thin matrices; 0: W is whole")}};
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node&) { return true; };
  def.wants_bf16 = [](const Node& node, const Node&) { return node.width >= 16; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    if (auto fused = FusedCrossKernel::make(args)) return fused;
    auto kernel = std::make_unique<CrossKernel>(args);
    FLUX_RETURN_IF_ERROR(kernel->make(args));
    return std::unique_ptr<Kernel>(std::move(kernel));
  };
  return def;
}

}  // namespace flux
