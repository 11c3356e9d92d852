// embedding: the rows of one sparse table for the example's slots, side by side or summed.
#include <algorithm>
#include <cstring>
#include <vector>

#include "flux/base/text.h"
#include "flux/nn/gather.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

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
  const bool concat = context.node.text_attr("combine") == "concat";
  context.node.width = it->second * (concat ? context.model.slots : 1);
  context.table = table;
  return Status::ok();
}

class EmbeddingKernel : public Kernel {
 public:
  explicit EmbeddingKernel(const KernelArgs& args)
      : table_(static_cast<size_t>(args.node.table)),
        out_(args.output),
        out_gradient_(args.output_gradient) {
    shape_.slots = args.graph.inputs().slots;
    shape_.dim = args.graph.inputs().tables.at(args.node.text_attr("table"));
    shape_.sum = args.node.text_attr("combine") == "sum";
    for (const Node& node : args.graph.nodes())
      adds_ = adds_ || (node.table == args.node.table && &node > &args.node);
  }

  void forward(Step& step) override {
    gather_rows(shape_, step.input->tables[table_], step.batch, out_);
  }
  void backward(Step& step) override {
    const TableInput& in = step.input->tables[table_];
    float* gradient = step.gradients->tables[table_];
    // Several embeddings may share a table: the last one (first in backward) clears.
    if (!adds_) std::memset(gradient, 0, in.row_count * shape_.dim * sizeof(float));
    scatter_add_rows(shape_, in, step.batch, out_gradient_, gradient);
  }

 private:
  size_t table_;
  GatherShape shape_;
  bool adds_ = false;
  Tensor out_, out_gradient_;
};

void reference(const ReferenceCall& call) {
  const uint32_t slots = call.graph.inputs().slots;
  const uint32_t dim = call.graph.inputs().tables.at(call.node.text_attr("table"));
  const bool sum = call.node.text_attr("combine") == "sum";
  const size_t n = static_cast<size_t>(call.batch) * call.node.width;
  std::fill(call.output, call.output + n, 0.0);
  for (uint32_t b = 0; b < call.batch; ++b) {
    for (uint32_t s = 0; s < slots; ++s) {
      const double* row = call.rows + call.index[b * slots + s] * dim;
      double* to = call.output + b * call.node.width + (sum ? 0 : s * dim);
      for (uint32_t d = 0; d < dim; ++d) to[d] += row[d];
    }
  }
}

}  // namespace

OperatorDef operator_embedding() {
  OperatorDef def;
  def.info.name = "embedding";
  def.info.doc = "Rows of a sparse table, one per slot: [B, slots * dim], or their sum [B, dim].";
  AttrSpec table;
  table.name = "table";
  table.type = AttrType::kString;
  table.required = true;
  table.default_value = std::string();
  table.doc = "name of the sparse table";
  AttrSpec combine;
  combine.name = "combine";
  combine.type = AttrType::kString;
  combine.default_value = std::string("concat");
  combine.choices = {"concat", "sum"};
  combine.doc = "how the slots of an example come together";
  def.info.attrs = {table, combine};
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new EmbeddingKernel(args));
  };
  return def;
}

}  // namespace flux
