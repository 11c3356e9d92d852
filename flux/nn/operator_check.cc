#include "flux/nn/operator_check.h"

#include <fmt/format.h>

#include "flux/base/cpu.h"
#include "flux/nn/attributes.h"
#include "flux/nn/members_check.h"
#include "flux/nn/operator.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

ModelInputs model_inputs() {
  ModelInputs inputs;
  inputs.dense = 16;
  inputs.weights = true;
  return inputs;
}

// Collects the layers of the net around one operator.
class NetAround {
 public:
  explicit NetAround(const OperatorCase& test) {
    for (const OperatorInput& input : test.inputs) names_.push_back(add_input(input));
    std::vector<std::string> inputs = names_;
    inputs.insert(inputs.end(), test.sources.begin(), test.sources.end());
    add("y", test.op, inputs, test.attrs);
  }
  void add(const std::string& name, const std::string& op, std::vector<std::string> inputs,
           std::map<std::string, AttrValue> attrs = {}) {
    nodes_.push_back({name, op, std::move(inputs), std::move(attrs), "case.yaml:1:1"});
  }
  void add_fc(const std::string& name, const std::string& input, int64_t units,
              const char* activation) {
    add(name, "fc", {input},
        {{"units", units}, {"bias", false}, {"activation", std::string(activation)}});
  }
  // The operator's output, perhaps beside its inputs, down to one loss.
  void add_head(bool concat) {
    if (concat) {
      std::vector<std::string> all = names_;
      all.insert(all.begin(), "y");
      all.push_back("dense");
      add("all", "concat", all);
      add_fc("h", "all", 32, "tanh");
    }
    add_fc("z", concat ? "h" : "y", 1, "none");
    add("l", "logistic_loss", {"z", "label"});
  }
  const std::vector<NodeSpec>& nodes() const { return nodes_; }

 private:
  std::string add_input(const OperatorInput& input) {
    const std::string name = fmt::format("x{}", names_.size());
    const int64_t width = static_cast<int64_t>(input.length) * input.dim;
    std::string last = name + "_data";
    if (input.from == OperatorInput::From::kTrained) {
      add_fc(last, "dense", width, "none");
    } else {
      add(last, "slice", {"dense"}, {{"begin", int64_t{0}}, {"end", width}});
    }
    if (input.from == OperatorInput::From::kMask) last = add_step(name + "_mask", "greater", last);
    if (!input.before.empty()) last = add_step(name + "_before", input.before, last);
    add(name, "reshape", {last}, {{"length", int64_t{input.length}}});
    return name;
  }
  std::string add_step(const std::string& name, const std::string& op, const std::string& input) {
    add(name, op, {input});
    return name;
  }

  std::vector<std::string> names_;
  std::vector<NodeSpec> nodes_;
};

std::string describe(const OperatorCase& test) {
  std::string text = test.op;
  for (const OperatorInput& input : test.inputs)
    text += fmt::format(" [{},{}]", input.length, input.dim);
  for (const std::string& source : test.sources) text += " " + source;
  for (const auto& [key, value] : test.attrs) text += fmt::format(" {}={}", key, attr_text(value));
  return text;
}

std::string check(const NetAround& around, Precision precision, bool same_predict, uint64_t seed) {
  CheckOptions options;
  options.net.precision = precision;
  options.net.batch_max = 9;
  // Over fewer than three examples what a batch is normalised to cancels out.
  const uint32_t least = same_predict ? 1 : 3;
  options.batch = least + static_cast<uint32_t>(seed % (10 - least));
  options.seed = seed;
  options.coordinates = 12;
  options.tolerance = 3e-4;
  options.same_predict = same_predict;
  if (precision == Precision::kBf16) {
    // Rounding moves numbers over kinks, which more examples hide, and sums cancel; what a wrong
    // term does is larger than this.
    options.net.batch_max = options.batch = 32;
    options.coordinates = 8;
    options.tolerance = 0.25;
  }
  const auto graph = must_build(model_inputs(), around.nodes());
  const std::string problem = check_net(graph, options);
  if (!problem.empty() || seed % 8 != 1) return problem;
  MembersCheck members;
  members.precision = precision;
  members.seed = seed;
  members.batch = seed % 3 == 0 ? 330 : 197;
  return check_members(graph, members);
}

}  // namespace

std::string check_operator(const OperatorCase& test, uint64_t seed) {
  NetAround alone(test), inside(test);
  const bool loss = find_operator(test.op)->is_loss;
  if (!loss) {
    alone.add_head(false);
    inside.add_head(true);
  }
  std::string problem = check(alone, Precision::kFp32, test.same_predict, seed);
  if (problem.empty() && !loss) problem = check(inside, Precision::kFp32, test.same_predict, seed);
  if (problem.empty() && !test.fp32_only && seed % 3 == 0 && cpu_has_avx512_bf16()) {
    problem = check(inside, Precision::kBf16, test.same_predict, seed);
    if (!problem.empty()) problem = "in bf16: " + problem;
  }
  return problem;
}

std::string check_random_operators(int count, const std::function<OperatorCase(Random&)>& make) {
  for (int i = 0; i < count; ++i) {
    Random random(static_cast<uint64_t>(i) + 1);
    const OperatorCase test = make(random);
    const std::string problem = check_operator(test, static_cast<uint64_t>(i) + 1);
    if (!problem.empty()) return fmt::format("case {}, {}: {}", i, describe(test), problem);
  }
  return "";
}

std::string refusal(const OperatorCase& test) {
  NetAround around(test);
  GraphBuilder builder(model_inputs());
  for (const NodeSpec& node : around.nodes()) {
    const Status status = builder.add(node);
    if (!status.is_ok()) return status.message();
  }
  return "";
}

}  // namespace flux
