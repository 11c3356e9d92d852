// embedding: the rows of one sparse table for the example's slots: side by side, summed, or one
// slot as a sequence. A slot with several keys is pooled first.
#include <algorithm>
#include <cmath>
#include <vector>

#include "flux/base/text.h"
#include "flux/nn/gather.h"
#include "flux/nn/gather_many.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

Pool pool_of(const std::string& name) {
  if (name == "mean") return Pool::kMean;
  if (name == "max") return Pool::kMax;
  return name == "first" ? Pool::kFirst : Pool::kSum;
}

// The slots that are read; none: all of the data.
const std::vector<std::string>& names_of(const ModelInputs& model, const Node& node) {
  const auto limited = model.table_slots.find(node.text_attr("table"));
  const std::vector<std::string>& named = node.texts_attr("slots");
  return named.empty() && limited != model.table_slots.end() ? limited->second : named;
}

// What the attributes say; infer() has found the slots.
ManyShape shape_of(const ModelInputs& model, const Node& node) {
  ManyShape shape;
  shape.all_slots = model.slots;
  shape.dim = model.tables.at(node.text_attr("table"));
  shape.pool = pool_of(node.text_attr("pool"));
  shape.add_slots = node.text_attr("combine") == "sum";
  if (node.text_attr("combine") == "sequence")
    shape.length = static_cast<uint32_t>(node.int_attr("length"));
  shape.keep_last = node.text_attr("keep") == "last";
  shape.slots = node.slots;
  return shape;
}

// A slot without rows in the table cannot be read from it.
Status check_slots_of_table(const InferContext& context) {
  const std::string& table = context.node.text_attr("table");
  const auto limited = context.model.table_slots.find(table);
  if (limited == context.model.table_slots.end()) return Status::ok();
  const std::vector<std::string>& has = limited->second;
  for (const std::string& name : context.node.texts_attr("slots"))
    if (std::find(has.begin(), has.end(), name) == has.end())
      return context.fail(fmt::format("table '{}' has no rows of slot '{}'{}; its slots: {}", table,
                                      name, did_you_mean(name, has), join(has, ", ")));
  return Status::ok();
}

Status infer(InferContext& context) {
  const std::string& table = context.node.text_attr("table");
  const auto it = context.model.tables.find(table);
  if (it == context.model.tables.end()) {
    std::vector<std::string> known;
    for (const auto& [name, dim] : context.model.tables) known.push_back(name);
    return context.fail(fmt::format("no table named '{}'{}; tables: {}", table,
                                    did_you_mean(table, known),
                                    known.empty() ? "none" : join(known, ", ")));
  }
  if (context.model.slots == 0) return context.fail("the data has no sparse features");
  FLUX_RETURN_IF_ERROR(context.find_slots(names_of(context.model, context.node)));
  FLUX_RETURN_IF_ERROR(check_slots_of_table(context));
  const ManyShape shape = shape_of(context.model, context.node);
  if (shape.length > 0 && shape.slots.size() != 1)
    return context.fail(fmt::format("a sequence is made of one slot, not of {}; name it in 'slots'",
                                    shape.slots.size()));
  const uint32_t positions =
      shape.length > 0 ? shape.length
                       : (shape.add_slots ? 1 : static_cast<uint32_t>(shape.slots.size()));
  context.node.length = positions;
  context.node.width = shape.dim * positions;
  context.table = table;
  return Status::ok();
}

class EmbeddingKernel : public Kernel {
 public:
  explicit EmbeddingKernel(const KernelArgs& args)
      : table_(static_cast<size_t>(args.node.table)),
        many_(shape_of(args.graph.inputs(), args.node)),
        out_(args.output),
        out_gradient_(args.output_gradient),
        line_(many_.dim) {
    const ModelInputs& model = args.graph.inputs();
    one_key_ = !model.many_keys && !model.values && many_.length == 0 &&
               names_of(model, args.node).empty();
    shape_ = {model.slots, many_.dim, many_.add_slots};
    if (!one_key_ && many_.pool == Pool::kMax)
      winners_ = args.memory.allocate_array<uint32_t>(static_cast<size_t>(args.batch_max) *
                                                      many_.slots.size() * many_.dim);
  }

  void forward(Step& step) override {
    TableInput in = step.input->tables[table_];
    if (!one_key_)
      return gather_many(many_, in, keys_of(step, step.first, step.end), out_, line_.data(),
                         winners_);
    in.index += static_cast<size_t>(step.first) * shape_.slots;
    gather_rows(shape_, in, step.rows(), rows_from(out_, step.first));
  }
  void backward(Step&) override {}
  void add_rows(Step& step, uint32_t first, uint32_t end) override {
    const TableInput& in = step.input->tables[table_];
    float* gradient = step.gradients->tables[table_];
    if (one_key_) return collect_rows(shape_, in, step.batch, first, end, out_gradient_, gradient);
    scatter_many(many_, in, keys_of(step, 0, step.batch), out_gradient_, line_.data(), winners_,
                 first, end, gradient);
  }

 private:
  static BatchKeys keys_of(const Step& step, uint32_t first, uint32_t end) {
    return {step.input->begin, step.input->values, first, end};
  }

  size_t table_;
  ManyShape many_;
  GatherShape shape_;
  bool one_key_ = false;
  Tensor out_, out_gradient_;
  std::vector<float> line_;
  uint32_t* winners_ = nullptr;
};

// Of the row of an occurrence, times the value of its key.
double shown_value(const ReferenceCall& call, const ManyShape& shape, uint32_t i, uint32_t d) {
  const double value = call.values == nullptr ? 1 : static_cast<double>(call.values[i]);
  return value * call.rows[call.index[i] * shape.dim + d];
}

double pooled(const ReferenceCall& call, const ManyShape& shape, KeyRange keys, uint32_t d) {
  if (keys.begin == keys.end) return 0;
  if (shape.pool == Pool::kFirst) return shown_value(call, shape, keys.begin, d);
  double sum = 0, weights = 0, most = shown_value(call, shape, keys.begin, d);
  for (uint32_t i = keys.begin; i < keys.end; ++i) {
    sum += shown_value(call, shape, i, d);
    weights += call.values == nullptr ? 1 : std::fabs(call.values[i]);
    most = std::max(most, shown_value(call, shape, i, d));
  }
  if (shape.pool == Pool::kMax) return most;
  if (shape.pool == Pool::kSum) return sum;
  return weights > 0 ? sum / weights : 0;
}

void reference(const ReferenceCall& call) {
  const ManyShape shape = shape_of(call.graph.inputs(), call.node);
  const uint32_t width = call.node.width;
  std::fill(call.output, call.output + static_cast<size_t>(call.batch) * width, 0.0);
  for (uint32_t b = 0; b < call.batch; ++b) {
    double* out = call.output + static_cast<size_t>(b) * width;
    for (size_t s = 0; s < shape.slots.size(); ++s) {
      const KeyRange keys = key_range(call.begin, shape.all_slots, b, shape.slots[s]);
      const KeyRange part = shown(keys, shape.length, shape.keep_last);
      for (uint32_t d = 0; d < shape.dim; ++d) {
        if (shape.length == 0)
          out[(shape.add_slots ? 0 : s * shape.dim) + d] += pooled(call, shape, keys, d);
        for (uint32_t i = part.begin; i < part.end && shape.length > 0; ++i)
          out[(i - part.begin) * shape.dim + d] = shown_value(call, shape, i, d);
      }
    }
  }
}

AttrSpec text_attribute(const char* name, const char* value, std::vector<std::string> choices,
                        const char* doc) {
  AttrSpec spec;
  spec.name = name;
  spec.type = AttrType::kString;
  spec.default_value = std::string(value);
  spec.choices = std::move(choices);
  spec.doc = doc;
  return spec;
}

std::vector<AttrSpec> attributes() {
  AttrSpec table = text_attribute("table", "", {}, "name of the sparse table");
  table.required = true;
  AttrSpec slots;
  slots.name = "slots";
  slots.type = AttrType::kStrings;
  slots.default_value = std::vector<std::string>();
  slots.doc = "names of the slots, in this order; none: all slots of the table";
  AttrSpec length;
  length.name = "length";
  length.default_value = int64_t{20};
  length.min = 1;
  length.max = 4096;
  length.doc = "combine: sequence: positions; longer ones are cut, shorter ones end in zeros";
  return {table,
          slots,
          text_attribute("combine", "concat", {"concat", "sum", "sequence"},
                         "how the slots of an example come together; sequence: the rows of one "
                         "slot one after the other, [B, length, dim]"),
          text_attribute("pool", "sum", {"sum", "mean", "max", "first"},
                         "how the keys of one slot come together, where it may have several"),
          length,
          text_attribute("keep", "last", {"first", "last"},
                         "combine: sequence: which keys stay of one that is too long")};
}

}  // namespace

OperatorDef operator_embedding() {
  OperatorDef def;
  def.info.name = "embedding";
  def.info.doc =
      "Rows of a sparse table, one per slot: [B, slots, dim], or their sum [B, dim], or one slot "
      "as "
      "a sequence [B, length, dim].";
  def.info.attrs = attributes();
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new EmbeddingKernel(args));
  };
  return def;
}

}  // namespace flux
