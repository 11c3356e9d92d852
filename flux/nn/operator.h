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
// Parameters: read from the flat vector that set_parameters() gives, at Parameter::offset, which
// stays as it is until the next one is given; the gradients of all of them are overwritten in the
// flat gradient vector.
// Threads: a batch is computed by a team (base/team.h). A node has one Kernel for each member, and
// a call is about the rows [Step::first, Step::end) alone: whichever member has them, in whatever
// order. A row's results may depend on that row alone; sums over rows go through RowSums, and are
// finished in sum(), which runs when all rows are done. What rows leave for sum() or for their own
// backward() lies in KernelArgs::memory, which the node's kernels share; vectors of a kernel are
// its member's scratch. An operator that needs the whole batch at once says so (`whole_batch`): it
// has one kernel, which one member runs on all rows. Nothing may allocate after make_kernel(). Rows
// at or beyond Step::batch hold leftovers; never let them reach a result.
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
#include "flux/nn/row_sums.h"
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

// Some rows of one batch on their way through the net.
struct Step {
  const NetInput* input = nullptr;
  uint32_t batch = 0;
  uint32_t first = 0, end = 0;        // the rows; `first` is a multiple of kSumRows
  NetGradients* gradients = nullptr;  // null when only predicting
  float* predictions = nullptr;       // [heads][batch], may be null
  // [heads][loss_stride]: of each kSumRows rows, set by the losses, without their weights.
  double* loss_sums = nullptr;
  uint32_t loss_stride = 0;

  uint32_t rows() const { return end - first; }
  float* head_predictions(uint32_t head) const {
    return predictions == nullptr ? nullptr : predictions + static_cast<size_t>(head) * batch;
  }
  // Of the rows that `row` belongs to.
  void set_loss(uint32_t head, uint32_t row, double sum) const {
    loss_sums[static_cast<size_t>(head) * loss_stride + row / kSumRows] = sum;
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

class Kernel;

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
  uint32_t members = 1;      // of the team
  Kernel* first = nullptr;   // the kernel of the node's first member; null: this is it
  bool inner = false;        // of a part of an operator, which has no looks()
};

// Every call but those of rows may be made of the first member's kernel alone, by any member; what
// is cut into parts is done part by part, in any order, perhaps at the same time.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // For each member: keeps what is small, and where the rest is.
  virtual void set_parameters(const float* flat) { (void)flat; }
  // Then: what all members share, brought into the form that products want.
  virtual uint32_t pack_parts() const { return 0; }
  virtual void pack(uint32_t part) { (void)part; }

  // Rows.
  virtual void forward(Step& step) = 0;
  virtual void backward(Step& step) = 0;

  // A kernel that wants to know all rows of its input (or of its output's gradient) before it goes
  // on with any: look_*() sees rows, then begin_narrow() says how many parts narrow() has, and when
  // those are done rows go on with forward() (or backward()).
  virtual bool looks(bool backward) const { return (void)backward, false; }
  virtual void look_forward(Step& step) { (void)step; }
  virtual void look_backward(Step& step) { (void)step; }
  virtual uint32_t begin_narrow(bool backward, uint32_t batch) {
    return (void)backward, (void)batch, 0;
  }
  virtual void narrow(bool backward, uint32_t part) { (void)backward, (void)part; }

  // What is left when backward() has seen all rows: gradients of parameters.
  virtual uint32_t sum_parts(uint32_t batch) const { return (void)batch, 0; }
  virtual void sum(Step& step, uint32_t part) { (void)step, (void)part; }
  // Of an operator that reads a table: adds to the gradients of the rows [first, end) of the
  // batch's rows in the table.
  virtual void add_rows(Step& step, uint32_t first, uint32_t end) {
    (void)step, (void)first, (void)end;
  }
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
  bool whole_batch = false;     // needs all rows at once
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
