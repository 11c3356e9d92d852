// The contract for authors of operators. One operator is one file, flux/nn/ops/<name>.cc, that
// defines `OperatorDef operator_<name>()`; CMake builds the registry from the list of files.
// To start copy ops/square.cc (element-wise, elementwise.h), ops/sub.cc (element-wise with
// broadcasting, broadcast.h), ops/fm.cc (any function of one example, row_operator.h) or
// ops/mse_loss.cc (a loss, row_loss.h); only what needs the whole batch or fast products has a
// kernel of its own (ops/cross.cc). A test beside the file calls check_random_operators() of
// nn/operator_check.h, which compares forward and backward with the plain version.
//
// Values: every value is a matrix [batch, width] (nn/tensor.h); only `width` is inferred, and
// `length` for those that are sequences: [batch, length, width / length], row by row. Tensors
// are fp32 or bf16 as the planner decides: in bf16 nets a value is bf16 if some consumer says so
// with `wants_bf16` (or feeds it to a concat that is bf16), else fp32. read_row/write_row serve
// both.
// Gradients: backward() gets d(loss)/d(output) complete, because consumers run before producers.
// It must write d(loss)/d(input i) to inputs[i].gradient if that tensor is set, overwriting or
// adding as inputs[i].add says; only the first `gradient.width` columns are wanted.
// Parameters: read in set_parameters() from the flat vector, at Parameter::offset, which stays as
// it is until the next one is given; backward() overwrites all of their gradients in the flat
// gradient vector. Threads: a Kernel belongs to one Net and one thread. Nothing may allocate after
// make_kernel(); large buffers come from KernelArgs::memory. Rows at or beyond Step::batch hold
// leftovers; never let them reach a result.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/nn/graph.h"
#include "flux/nn/net.h"
#include "flux/nn/net_memory.h"
#include "flux/nn/tensor.h"

namespace flux {

struct OperatorDef;

struct Node {
  std::string name, op, origin;
  const OperatorDef* def = nullptr;
  std::vector<uint32_t> inputs;  // indexes into Graph::nodes(), all smaller than this node's
  std::map<std::string, AttrValue> attrs;  // checked, defaults filled in
  uint32_t width = 0;                      // numbers per example
  uint32_t length = 1;                     // positions per example, each of width / length
  std::vector<uint32_t> parameters;        // indexes into Graph::parameters()
  int table = -1;                          // index into Graph::tables(), or -1
  std::vector<uint32_t> slots;             // that it reads, for operators over keys
  bool trainable = false;                  // parameters or a table at or above this node
  bool relu_output = false;  // the output is max(0, z): a consumer may mask its gradient for us

  int64_t int_attr(const std::string& key) const { return std::get<int64_t>(attrs.at(key)); }
  double float_attr(const std::string& key) const { return std::get<double>(attrs.at(key)); }
  bool bool_attr(const std::string& key) const { return std::get<bool>(attrs.at(key)); }
  const std::string& text_attr(const std::string& key) const {
    return std::get<std::string>(attrs.at(key));
  }
  const std::vector<std::string>& texts_attr(const std::string& key) const {
    return std::get<std::vector<std::string>>(attrs.at(key));
  }
  uint32_t dim() const { return width / length; }  // numbers per position
  // "[B,13]", or "[B,20,8]" for a sequence.
  std::string shape() const;
};

// What shape inference sees and fills in: node.width at least.
struct InferContext {
  const ModelInputs& model;
  std::span<const Node* const> inputs;
  Node& node;
  std::vector<Parameter> parameters;  // to be added; names without the node's prefix
  std::string table;                  // table read, if any

  // Uniform in [-init_range, init_range) at first and updated by the optimizer, unless the result
  // is changed; it is good until the next call. For a summary (nn/graph.h):
  //   Parameter& p = context.add_parameter("count", {n}, 0);
  //   p.init = {InitKind::kConstant, 1};
  //   p.update = UpdateKind::kSummary;
  //   p.decay = 0.999F;
  Parameter& add_parameter(const std::string& name, std::vector<int64_t> shape, float init_range);
  // kInvalid with the origin, the node and the operator in front.
  Status fail(const std::string& what) const;
  // "concat[B,273], dense[B,13]"
  std::string shapes() const;
  // Fills node.slots by name, in the given order; with all of them if there are no names.
  Status find_slots(const std::vector<std::string>& names) const;
};

// One batch on its way through the net.
struct Step {
  const NetInput* input = nullptr;
  uint32_t batch = 0;
  NetGradients* gradients = nullptr;  // null when only predicting
  float* predictions = nullptr;       // [heads][batch], may be null
  double* loss_sums = nullptr;        // [heads], set by the losses, without their weights

  float* head_predictions(uint32_t head) const {
    return predictions == nullptr ? nullptr : predictions + static_cast<size_t>(head) * batch;
  }
};

struct KernelInput {
  Tensor value;
  Tensor gradient;       // unset: not wanted (or already in place, for concat)
  bool add = false;      // add to the gradient instead of overwriting it
  bool aliased = false;  // concat: the value already lies in our output
  // Multiply the gradient by (value > 0): the producer's relu, folded into our write. Only asked
  // of operators with `masks_relu`.
  bool mask_relu = false;
};

struct KernelArgs {
  const Graph& graph;
  const Node& node;
  Precision precision = Precision::kFp32;
  uint32_t batch_max = 0;
  NetMemory& memory;
  Tensor output;
  Tensor output_gradient;
  bool output_gradient_masked = false;  // the consumer has applied our relu mask
  std::vector<KernelInput> inputs;
  uint32_t head = 0;         // of a loss: its place in Graph::heads()
  float head_weight = 1.0F;  // of a loss: what its gradient is multiplied by
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void set_parameters(const float* flat) { (void)flat; }
  virtual void forward(Step& step) = 0;
  virtual void backward(Step& step) = 0;
};

// The plain version of forward, in double and without tricks: what tests believe. Numeric
// derivatives of it judge backward(). A loss writes the loss of each example (without the weight
// of its head) and, where asked, what it predicts.
struct ReferenceCall {
  const Graph& graph;
  const Node& node;
  uint32_t batch = 0;
  std::vector<const double*> inputs;   // each [batch][width of that input]
  const double* parameters = nullptr;  // flat, as Graph::parameters() lays out
  const double* rows = nullptr;        // of the node's table
  const uint32_t* index = nullptr;     // TableInput::index
  const uint32_t* begin = nullptr;     // NetInput::begin
  const float* values = nullptr;       // NetInput::values
  double* output = nullptr;            // [batch][node.width]
  double* predictions = nullptr;       // of a loss: [batch]
  uint64_t noise = 0;                  // NetInput::noise

  uint32_t input_width(size_t i) const { return graph.nodes()[node.inputs[i]].width; }
  // Values of the node's i-th parameter.
  const double* parameter(size_t i) const {
    return parameters + graph.parameters()[node.parameters[i]].offset;
  }
};

// The attribute of every loss that says how much it counts among several.
inline constexpr const char* kLossWeight = "loss_weight";
AttrSpec loss_weight_attribute();

struct OperatorDef {
  OperatorInfo info;
  Status (*infer)(InferContext& context) = nullptr;
  void (*reference)(const ReferenceCall& call) = nullptr;
  Result<std::unique_ptr<Kernel>> (*make_kernel)(const KernelArgs& args) = nullptr;
  bool is_loss = false;
  int label_input = -1;         // of a loss: which of its inputs is the label
  bool passes_gradient = true;  // false: nothing above it learns by it, as above a comparison
  bool masks_relu = false;
  // backward() may be asked to write an input's gradient over that input's value: it has read all
  // it needs of the value by then (a mask_relu reads each element just before writing it).
  bool replaces_input = false;
  // backward() does not look at the operator's own output. Null: it does.
  bool (*forgets_output)(const Node& node) = nullptr;
  bool (*wants_bf16)(const Node& node, const Node& input) = nullptr;  // null: never
};

// By name, or null. "dense", "label" and "weight" are the sources of nn/sources.cc.
const OperatorDef* find_operator(const std::string& name);
const OperatorDef* find_source(const std::string& name);
// Which label a node is: an index into ModelInputs::labels, -1: none.
int label_column(const Node& node);

}  // namespace flux
