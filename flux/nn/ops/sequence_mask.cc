// sequence_mask: 1 where a sequence of a slot's keys has a key, 0 behind its end.
#include <algorithm>
#include <vector>

#include "flux/nn/gather_many.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  FLUX_RETURN_IF_ERROR(context.find_slots({context.node.text_attr("slot")}));
  context.node.width = context.node.length = static_cast<uint32_t>(context.node.int_attr("length"));
  return Status::ok();
}

class SequenceMaskKernel : public Kernel {
 public:
  explicit SequenceMaskKernel(const KernelArgs& args)
      : slots_(args.graph.inputs().slots),
        slot_(args.node.slots[0]),
        out_(args.output),
        line_(out_.width) {}

  void forward(Step& step) override {
    for (uint32_t b = step.first; b < step.end; ++b) {
      const KeyRange keys = key_range(step.input->begin, slots_, b, slot_);
      const uint32_t n = std::min(keys.end - keys.begin, out_.width);
      std::fill(line_.begin(), line_.begin() + n, 1.0F);
      std::fill(line_.begin() + n, line_.end(), 0.0F);
      write_row(out_, b, line_.data(), false);
    }
  }
  void backward(Step&) override {}

 private:
  uint32_t slots_, slot_;
  Tensor out_;
  std::vector<float> line_;
};

void reference(const ReferenceCall& call) {
  const ModelInputs& model = call.graph.inputs();
  const uint32_t slot = call.node.slots[0];
  for (uint32_t b = 0; b < call.batch; ++b) {
    const KeyRange keys = key_range(call.begin, model.slots, b, slot);
    for (uint32_t t = 0; t < call.node.width; ++t)
      call.output[b * call.node.width + t] = t < keys.end - keys.begin ? 1 : 0;
  }
}

}  // namespace

OperatorDef operator_sequence_mask() {
  OperatorDef def;
  def.info.name = "sequence_mask";
  def.info.doc =
      "1 for each key of a slot, up to `length` of them, then 0: [B, length]. Goes with an "
      "embedding "
      "of the same slot and length with combine: sequence.";
  AttrSpec slot;
  slot.name = "slot";
  slot.type = AttrType::kString;
  slot.required = true;
  slot.default_value = std::string();
  slot.doc = "name of the slot";
  AttrSpec length;
  length.name = "length";
  length.default_value = int64_t{20};
  length.min = 1;
  length.max = 4096;
  length.doc = "positions";
  def.info.attrs = {slot, length};
  def.infer = infer;
  def.reference = reference;
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new SequenceMaskKernel(args));
  };
  return def;
}

}  // namespace flux
