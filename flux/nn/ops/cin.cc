// cin: one layer of xDeepFM's compressed interaction network. Of x0 [B,m,d] and the last layer x
// [B,h,d], unit u at feature c is the sum over i, j of W[i,j,u] x0[i,c] x[j,c].
//
// For each feature c that is a product of the m * h numbers x0[i,c] x[j,c] with W; those are made
// for a few hundred (example, feature) pairs at a time, forward and again backward, so that they
// stay in the caches.
#include <algorithm>
#include <cmath>

#include "flux/nn/attribute_specs.h"
#include "flux/nn/fc_products.h"
#include "flux/nn/operator.h"
#include "flux/nn/row_math.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node &x0 = *context.inputs[0], &x = *context.inputs[1];
  if (x0.dim() != x.dim())
    return context.fail(
        fmt::format("both inputs must have the same number of features per position, got {}",
                    context.shapes()));
  const int64_t units = context.node.int_attr("units"), m = x0.length, h = x.length;
  context.add_parameter("weight", {m * h, units}, std::sqrt(1.0F / static_cast<float>(m * h)));
  context.node.length = static_cast<uint32_t>(units);
  context.node.width = static_cast<uint32_t>(units) * x.dim();
  return Status::ok();
}

class CinKernel : public Kernel {
 public:
  explicit CinKernel(const KernelArgs& args)
      : x0_(args.inputs[0]),
        x_(args.inputs[1]),
        out_(args.output),
        out_gradient_(args.output_gradient),
        m_(args.graph.nodes()[args.node.inputs[0]].length),
        h_(args.graph.nodes()[args.node.inputs[1]].length),
        units_(args.node.length),
        dim_(args.node.dim()),
        examples_(std::max(1U, 512 / dim_)),
        weight_(args.graph.parameters()[args.node.parameters[0]].offset),
        x0_row_(x0_.value.width),
        dx0_row_(x0_.value.width),
        x_row_(x_.value.width),
        out_row_(out_.width),
        x_turned_(x_.value.width),
        dx_turned_(x_.value.width),
        pairs_row_(m_ * h_),
        units_row_(units_),
        dw_(m_ * h_ * units_),
        db_(units_) {}

  Status make(const KernelArgs& args) {
    const DType type = args.precision == Precision::kBf16 ? DType::kBf16 : DType::kF32;
    const auto allocate = [&](uint32_t width, DType of) -> Tensor {
      const uint32_t stride = (width + 31) / 32 * 32;
      const size_t bytes = static_cast<size_t>(stride) * examples_ * dim_ * dtype_size(of);
      return {args.memory.allocate(bytes), width, stride, of};
    };
    shape_.x = allocate(m_ * h_, type);
    shape_.dx = allocate(m_ * h_, type);
    shape_.y = allocate(units_, DType::kF32);
    shape_.dz = allocate(units_, type);
    shape_.batch_max = examples_ * dim_;
    FLUX_ASSIGN_OR_RETURN(products_, make_products(shape_, args.memory));
    return Status::ok();
  }
  void set_parameters(const float* flat) override {
    std::fill(db_.begin(), db_.end(), 0.0F);
    products_->set_all_parameters(flat + weight_, db_.data());
  }
  void forward(Step& step) override {
    for (uint32_t begin = 0; begin < step.batch; begin += examples_) {
      const uint32_t end = std::min(step.batch, begin + examples_);
      for (uint32_t b = begin; b < end; ++b) write_pairs(b, (b - begin) * dim_);
      products_->forward_all((end - begin) * dim_);
      for (uint32_t b = begin; b < end; ++b) write_output(b, (b - begin) * dim_);
    }
  }
  void backward(Step& step) override {
    float* dw = step.gradients->parameters + weight_;
    std::fill_n(dw, dw_.size(), 0.0F);
    for (uint32_t begin = 0; begin < step.batch; begin += examples_) {
      const uint32_t end = std::min(step.batch, begin + examples_), rows = (end - begin) * dim_;
      for (uint32_t b = begin; b < end; ++b) {
        write_pairs(b, (b - begin) * dim_);
        read_output_gradient(b, (b - begin) * dim_);
      }
      products_->backward_weights_all(rows, dw_.data(), db_.data());
      add_scaled(1.0F, dw_.data(), dw_.size(), dw);
      products_->backward_data_all(rows);
      for (uint32_t b = begin; b < end; ++b) write_gradients(b, (b - begin) * dim_);
    }
  }

 private:
  // x of example b with its features first: [d][h].
  void turn_x(uint32_t b) {
    const float* x = read_row(x_.value, b, x_row_.data());
    for (size_t j = 0; j < h_; ++j)
      for (size_t c = 0; c < dim_; ++c) x_turned_[c * h_ + j] = x[j * dim_ + c];
  }
  void write_pairs(uint32_t b, uint32_t row) {
    const float* x0 = read_row(x0_.value, b, x0_row_.data());
    turn_x(b);
    for (size_t c = 0; c < dim_; ++c) {
      const float* x = x_turned_.data() + c * h_;
      for (size_t i = 0; i < m_; ++i)
        for (size_t j = 0; j < h_; ++j) pairs_row_[i * h_ + j] = x0[i * dim_ + c] * x[j];
      write_row(shape_.x, row + c, pairs_row_.data(), false);
    }
  }
  void write_output(uint32_t b, uint32_t row) {
    for (size_t c = 0; c < dim_; ++c) {
      const float* y = shape_.y.f32(row + c);
      for (size_t u = 0; u < units_; ++u) out_row_[u * dim_ + c] = y[u];
    }
    write_row(out_, b, out_row_.data(), false);
  }
  void read_output_gradient(uint32_t b, uint32_t row) {
    const float* dy = read_row(out_gradient_, b, out_row_.data());
    for (size_t c = 0; c < dim_; ++c) {
      for (size_t u = 0; u < units_; ++u) units_row_[u] = dy[u * dim_ + c];
      write_row(shape_.dz, row + c, units_row_.data(), false);
    }
  }
  void write_gradients(uint32_t b, uint32_t row) {
    turn_x(b);
    const float* x0 = read_row(x0_.value, b, x0_row_.data());
    std::fill(dx_turned_.begin(), dx_turned_.end(), 0.0F);
    for (size_t c = 0; c < dim_; ++c) {
      const float* pairs = read_row(shape_.dx, row + c, pairs_row_.data());
      for (size_t i = 0; i < m_; ++i) {
        add_scaled(x0[i * dim_ + c], pairs + i * h_, h_, dx_turned_.data() + c * h_);
        dx0_row_[i * dim_ + c] = dot_of(pairs + i * h_, x_turned_.data() + c * h_, h_);
      }
    }
    if (x0_.gradient) write_row(x0_.gradient, b, dx0_row_.data(), x0_.add);
    for (size_t j = 0; j < h_; ++j)
      for (size_t c = 0; c < dim_; ++c) x_row_[j * dim_ + c] = dx_turned_[c * h_ + j];
    if (x_.gradient) write_row(x_.gradient, b, x_row_.data(), x_.add);
  }

  KernelInput x0_, x_;
  Tensor out_, out_gradient_;
  uint32_t m_, h_, units_, dim_;
  uint32_t examples_;  // at a time
  size_t weight_;
  std::vector<float> x0_row_, dx0_row_, x_row_, out_row_, x_turned_, dx_turned_, pairs_row_,
      units_row_;
  std::vector<float> dw_, db_;
  FcShape shape_;  // rows are (example, feature) pairs
  std::unique_ptr<FcProducts> products_;
};

void reference(const ReferenceCall& call) {
  const Node& first = call.graph.nodes()[call.node.inputs[0]];
  const Node& last = call.graph.nodes()[call.node.inputs[1]];
  const size_t m = first.length, h = last.length, units = call.node.length, dim = call.node.dim();
  for (size_t b = 0; b < call.batch; ++b) {
    const double *x0 = call.inputs[0] + b * first.width, *x = call.inputs[1] + b * last.width;
    double* y = call.output + b * call.node.width;
    std::fill_n(y, call.node.width, 0.0);
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < h; ++j)
        for (size_t u = 0; u < units; ++u)
          for (size_t c = 0; c < dim; ++c)
            y[u * dim + c] +=
                call.parameter(0)[(i * h + j) * units + u] * x0[i * dim + c] * x[j * dim + c];
  }
}

}  // namespace

OperatorDef operator_cin() {
  OperatorDef def;
  def.info = {"cin",
              "One layer of xDeepFM's interactions: of x0 [B,m,d] and x [B,h,d], [B,units,d].",
              2,
              2,
              {required(int_attribute("units", 1, 1, 4096, "feature maps of the layer"))}};
  def.infer = infer;
  def.reference = reference;
  def.whole_batch = true;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    auto kernel = std::make_unique<CinKernel>(args);
    FLUX_RETURN_IF_ERROR(kernel->make(args));
    return std::unique_ptr<Kernel>(std::move(kernel));
  };
  return def;
}

}  // namespace flux
