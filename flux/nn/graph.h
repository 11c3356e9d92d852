// Graph: a model as a static graph of operators, apart from any syntax and any engine.
//
// A front end (the YAML of job/, later Python) adds nodes through GraphBuilder; finish() infers all
// shapes and lays every trainable parameter out in one flat dense vector. A Graph is immutable and
// shared by all threads; nn/net.h executes it.
// Failure: kInvalid that names the node, its origin ("job.yaml:12:5") and the shapes involved.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "flux/base/flat_range.h"
#include "flux/base/status.h"

namespace flux {

using AttrValue = std::variant<int64_t, double, bool, std::string, std::vector<std::string>>;

enum class AttrType : unsigned char { kInt, kFloat, kBool, kString, kStrings };

// One attribute of an operator, as registered by the operator's own file: checks, messages, the
// JSON Schema and the docs all come from it.
struct AttrSpec {
  std::string name;
  AttrType type = AttrType::kInt;
  bool required = false;
  AttrValue default_value{};
  double min = 0, max = 0;           // for numbers, when min < max
  std::vector<std::string> choices;  // for strings, when not empty
  std::string doc;
};

struct NodeSpec {
  std::string name;                 // unique in the graph
  std::string op;                   // registered operator
  std::vector<std::string> inputs;  // names of nodes
  std::map<std::string, AttrValue> attrs;
  std::string origin;  // "file:line:col", for messages
};

// What the data offers to a model: the graph's sources.
struct ModelInputs {
  uint32_t slots = 0;                      // sparse features per example
  uint32_t dense = 0;                      // dense features per example
  std::map<std::string, uint32_t> tables;  // sparse tables: name -> dim
  std::vector<std::string> slot_names{};   // by slot; empty: they have none
  bool many_keys = false;  // a slot has any number of keys (NetInput::begin), else exactly one
  std::vector<std::string> labels{"label"};  // each is a source of that name
  bool weights = false;                      // examples have weights: the source "weight"
  bool values = false;                       // keys have values: NetInput::values
  // Slots whose keys have rows in a table; one that is not named here has rows for all.
  std::map<std::string, std::vector<std::string>> table_slots{};
};

// How a parameter begins; see nn/initial_values.h.
enum class InitKind : unsigned char {
  kUniform,   // in [-value, value); 0: zeros
  kNormal,    // of deviation `value`
  kConstant,  // `value`
  kXavier,    // uniform, bound `value` * sqrt(6 / (inputs + outputs))
  kHe,        // normal, deviation `value` * sqrt(2 / inputs)
};
struct Initializer {
  InitKind kind = InitKind::kUniform;
  float value = 0;
  bool operator==(const Initializer&) const = default;
};

// What becomes of a parameter when a gradient is pushed.
enum class UpdateKind : unsigned char {
  kOptimizer,  // the job's dense optimizer, with the mean gradient over the examples
  // w = decay * w + g. The "gradient" g is a sum over the examples of the batch (their count, the
  // sum of a feature, of its squares), so backward() writes sums. No learning rate and no scale of
  // one touches it. When several batches are merged into one step (mode sync), the
  // decay is applied once and the g of all of them is added up, each once and whole.
  kSummary,
};

// A dense parameter: `size` floats at `offset` of the flat vector.
struct Parameter {
  std::string name;  // "fc1.weight"
  std::vector<int64_t> shape;
  size_t offset = 0;
  size_t size = 0;
  Initializer init;
  UpdateKind update = UpdateKind::kOptimizer;
  float decay = 1;     // of a summary, from 0 to 1
  float lr_scale = 1;  // multiplies the learning rate of the optimizer
};

// One thing that a model predicts: a loss and the label that it is held against.
struct Head {
  std::string name;     // of the loss
  uint32_t node = 0;    // index into Graph::nodes()
  int label = -1;       // index into ModelInputs::labels; -1: a loss without a label
  float weight = 1.0F;  // of its loss in the sum that is minimised
};

struct Node;  // defined in nn/operator.h

class Graph {
 public:
  ~Graph();
  // A model of data with any number of keys, or with tables of some slots, that has none gets one
  // that belongs to no node and never moves: its shard counts examples.
  const std::vector<Parameter>& parameters() const;
  size_t parameter_count() const;  // floats in the flat vector
  // Initial values: each a hash of (parameter name, index, seed).
  std::vector<float> initial_parameters(uint64_t seed) const;
  // Ranges of the flat vector that are summaries.
  std::vector<FlatRange> summaries() const;
  // Tables the graph reads, in the order that NetInput::tables and NetGradients::tables follow.
  const std::vector<std::string>& tables() const;
  const ModelInputs& inputs() const;
  const std::vector<Node>& nodes() const;
  // Its losses in the order of the file; at least one.
  const std::vector<Head>& heads() const;
  // One line per node: name, operator, inputs, attributes that are not the default, shape,
  // parameters. For people; golden-tested.
  std::string to_text() const;
  uint64_t hash() const;

 private:
  friend class GraphBuilder;
  Graph();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(ModelInputs inputs);
  ~GraphBuilder();
  // What the data offers exists from the start: "dense" when there are dense features, each label
  // by its name, "weight" when examples have weights.
  Status add(NodeSpec node);
  // At least one node must be a loss. Unused nodes are an error (a person forgot something).
  Result<std::shared_ptr<const Graph>> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Operators that a NodeSpec may name, with their attributes, sorted by name.
struct OperatorInfo {
  std::string name;
  std::string doc;
  int inputs_min = 0, inputs_max = 0;
  std::vector<AttrSpec> attrs;
  int probability_input = -1;  // input that has to be from 0 to 1, as a label of a log loss
};
const std::vector<OperatorInfo>& operator_infos();
// Attributes that any node with parameters takes besides its operator's own.
const std::vector<AttrSpec>& parameter_attributes();

}  // namespace flux
