// fm: the second-order term of a factorization machine, the sum of <x_i, x_j> over all pairs i < j
// of slots, by half of (sum x)^2 - sum x^2.
#include "flux/base/cpu.h"
#include "flux/nn/interactions.h"
#include "flux/nn/row_kernels.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  FLUX_RETURN_IF_ERROR(check_slots(context));
  context.node.width = 1;
  return Status::ok();
}

struct Fm : RowFunction {
  Fm(const Graph& graph, const Node& node)
      : slots(input_of(graph, node, 0).length), dim(input_of(graph, node, 0).dim()) {}
  size_t scratch() const { return dim; }
  template <typename T>
  void forward(const Row<T>& row) const {
    const T* x = row.x[0];
    sum_slots(x, slots, dim, row.scratch);
    *row.y = T(0.5) * (dot_of(row.scratch, row.scratch, dim) - dot_of(x, x, slots * dim));
  }
  void backward(const RowGradient& row) const {
    const float* x = row.x[0];
    sum_slots(x, slots, dim, row.scratch);
    for (size_t s = 0; s < slots; ++s)
      for (size_t c = 0; c < dim; ++c)
        row.dx[0][s * dim + c] = *row.dy * (row.scratch[c] - x[s * dim + c]);
  }

  size_t slots, dim;
};

// The same by AVX-512, for whole batches of rows that fill a few vectors.
class WideFmKernel : public Kernel {
 public:
  // Whether the CPU and the tensors allow it.
  static bool fits(const KernelArgs& args) {
    const KernelInput& x = args.inputs[0];
    const bool cpu = x.value.type == DType::kBf16 ? cpu_has_avx512_bf16() : cpu_has_avx512();
    return cpu && x.value.width >= kWidthMin && (!x.gradient || x.gradient.width == x.value.width);
  }
  explicit WideFmKernel(const KernelArgs& args)
      : bf16_(args.inputs[0].value.type == DType::kBf16),
        has_dx_(args.inputs[0].gradient),
        out_(args.output),
        out_gradient_(args.output_gradient),
        y_(args.memory.allocate_array<float>(args.batch_max)) {
    const KernelInput& x = args.inputs[0];
    const Node& from = input_of(args.graph, args.node, 0);
    rows_.slots = from.length;
    rows_.dim = from.dim();
    rows_.x = {x.value.data, x.value.stride};
    rows_.dx = {x.gradient.data, x.gradient.stride};
    rows_.add = x.add;
    scratch_.resize_discard(x.value.width + 16);
    rows_.scratch = scratch_.data();
  }
  void forward(Step& step) override {
    const FmRows rows = rows_of(step);
    bf16_ ? fm_forward_bf16(rows, y_ + step.first) : fm_forward_f32(rows, y_ + step.first);
    for (uint32_t b = step.first; b < step.end; ++b) write_row(out_, b, y_ + b, false);
  }
  void backward(Step& step) override {
    if (!has_dx_) return;
    const FmRows rows = rows_of(step);
    for (uint32_t b = step.first; b < step.end; ++b) y_[b] = *read_row(out_gradient_, b, y_ + b);
    bf16_ ? fm_backward_bf16(rows, y_ + step.first) : fm_backward_f32(rows, y_ + step.first);
  }

 private:
  static constexpr uint32_t kWidthMin = 64;

  FmRows rows_of(const Step& step) const {
    FmRows rows = rows_;
    rows.batch = step.rows();
    for (RowsAt* at : {&rows.x, &rows.dx})
      if (at->data != nullptr)
        at->data = static_cast<char*>(at->data) + step.first * at->stride * (bf16_ ? 2 : 4);
    return rows;
  }

  bool bf16_, has_dx_;
  Tensor out_, out_gradient_;
  float* y_;
  Buffer<float> scratch_;
  FmRows rows_;
};

}  // namespace

OperatorDef operator_fm() {
  OperatorDef def = row_operator<Fm>(
      "fm", "Sum of the inner products of all pairs of slots of [B,slots,dim]: [B,1].", 1, 1,
      infer);
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    if (WideFmKernel::fits(args)) return std::unique_ptr<Kernel>(new WideFmKernel(args));
    return std::unique_ptr<Kernel>(new RowKernel<Fm>(args));
  };
  return def;
}

}  // namespace flux
