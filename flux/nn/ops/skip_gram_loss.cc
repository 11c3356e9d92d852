// skip_gram_loss: word2vec. An example is a sentence: one slot has its words, another one
// negatives; pairs of near words should agree, words and negatives should not (nn/skip_gram.h). It
// reads the rows of its table itself: the first half is a word's vector as a center, the second as
// a context.
#include <algorithm>
#include <cstring>

#include "flux/base/text.h"
#include "flux/nn/attribute_specs.h"
#include "flux/nn/row_loss.h"
#include "flux/nn/skip_gram.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

// What the attributes say; infer() has accepted them.
SkipGramShape shape_of(const Graph& graph, const Node& node) {
  const ModelInputs& model = graph.inputs();
  SkipGramShape shape;
  shape.dim = model.tables.at(node.text_attr("table")) / 2;
  shape.all_slots = model.slots;
  shape.words = node.slots[0];
  shape.negatives = node.slots[1];
  shape.window = static_cast<uint32_t>(node.int_attr("window"));
  shape.share = static_cast<uint32_t>(node.int_attr("share"));
  shape.per_pair = static_cast<float>(node.float_attr("per_pair"));
  return shape;
}

Result<uint32_t> table_dim(const InferContext& context) {
  const std::string& name = context.node.text_attr("table");
  const auto it = context.model.tables.find(name);
  if (it != context.model.tables.end()) return it->second;
  std::vector<std::string> known;
  for (const auto& [table, dim] : context.model.tables) known.push_back(table);
  return context.fail(fmt::format("no table named '{}'{}; tables: {}", name,
                                  did_you_mean(name, known),
                                  known.empty() ? "none" : join(known, ", ")));
}

Status infer(InferContext& context) {
  const Node& node = context.node;
  FLUX_ASSIGN_OR_RETURN(const uint32_t dim, table_dim(context));
  if (dim % 2 != 0)
    return context.fail(
        fmt::format("a row has two halves, a word's vector as a center and as a context: the dim "
                    "of table '{}' must be even, got {}",
                    node.text_attr("table"), dim));
  const std::string &words = node.text_attr("words"), &negatives = node.text_attr("negatives");
  FLUX_RETURN_IF_ERROR(context.find_slots({words, negatives}));
  if (words == negatives)
    return context.fail(
        fmt::format("'words' and 'negatives' must be two slots, not '{}' twice", words));
  if (!context.model.many_keys)
    return context.fail("a sentence needs slots with any number of keys; see data.format");
  FLUX_RETURN_IF_ERROR(check_loss_weight(context, 0));
  context.node.width = 1;
  context.table = node.text_attr("table");
  return Status::ok();
}

// In training all happens in add_rows(), when gradients may be added to: scores are found once.
class SkipGramKernel : public Kernel {
 public:
  explicit SkipGramKernel(const KernelArgs& args)
      : shape_(shape_of(args.graph, args.node)),
        table_(static_cast<size_t>(args.node.table)),
        given_(args, 0),
        head_(args.head),
        head_weight_(args.head_weight),
        weights_(args.batch_max, 1.0F),
        skip_gram_(shape_, &args.memory) {}

  void forward(Step& step) override {
    if (step.gradients == nullptr) run(step, call_of(step));
  }
  void backward(Step&) override {}
  void add_rows(Step& step, uint32_t, uint32_t) override {
    SkipGramCall call = call_of(step);
    call.scale = head_weight_ / static_cast<float>(step.batch);
    call.gradient = step.gradients->tables[table_];
    run(step, call);
  }

 private:
  SkipGramCall call_of(const Step& step) {
    if (given_)
      for (uint32_t b = 0; b < step.batch; ++b) weights_[b] = given_.of(b);
    SkipGramCall call;
    call.table = &step.input->tables[table_];
    call.begin = step.input->begin;
    call.batch = step.batch;
    call.noise = step.input->noise;
    call.weights = weights_.data();
    call.predictions = step.head_predictions(head_);
    return call;
  }
  void run(Step& step, const SkipGramCall& call) { step.set_loss(head_, 0, skip_gram_.run(call)); }

  const SkipGramShape shape_;
  const size_t table_;
  LossWeights given_;
  uint32_t head_;
  float head_weight_;
  std::vector<float> weights_;
  SkipGram skip_gram_;
};

// The plain version, pair by pair.
class PlainSkipGram {
 public:
  explicit PlainSkipGram(const ReferenceCall& call)
      : call_(call), shape_(shape_of(call.graph, call.node)) {}

  void run() const {
    for (uint32_t b = 0; b < call_.batch; ++b) {
      const KeyRange words = shape_.words_of(call_.begin, b);
      double loss = 0, probability = 0, pairs = 0;
      for (uint32_t i = words.begin; i < words.end; ++i) {
        const uint32_t reach = skip_gram_reach(call_.noise, i, shape_.window);
        for (uint32_t j = words.begin; j < words.end; ++j) {
          if (i == j || j + reach < i || i + reach < j) continue;
          const double score = score_of(i, j);
          loss += softplus_of(-score) + loss_of_negatives(b, i, j);
          probability += sigmoid(score);
          ++pairs;
        }
      }
      call_.output[b] = loss * loss_weight(call_, 0, b);
      call_.predictions[b] = pairs > 0 ? probability / pairs : 0;
    }
  }

 private:
  double score_of(uint32_t i, uint32_t j) const {
    double sum = 0;
    for (uint32_t d = 0; d < shape_.dim; ++d)
      sum += call_.rows[call_.index[i] * 2 * shape_.dim + d] *
             call_.rows[(call_.index[j] * 2 + 1) * shape_.dim + d];
    return sum;
  }
  double loss_of_negatives(uint32_t example, uint32_t i, uint32_t j) const {
    const uint32_t first = example / shape_.share * shape_.share;
    const uint32_t last = std::min(call_.batch, first + shape_.share);
    double loss = 0, all = 0;
    for (uint32_t b = first; b < last; ++b) {
      const KeyRange negatives = shape_.negatives_of(call_.begin, b);
      for (uint32_t n = negatives.begin; n < negatives.end; ++n, ++all)
        if (call_.index[n] != call_.index[j]) loss += softplus_of(score_of(i, n));
    }
    return all > 0 ? loss * static_cast<double>(shape_.per_pair) / all : 0;
  }

  const ReferenceCall& call_;
  SkipGramShape shape_;
};

AttrSpec text_attribute(const char* name, const char* value, const char* doc) {
  return {name, AttrType::kString, false, std::string(value), 0, 0, {}, doc};
}

std::vector<AttrSpec> attributes() {
  return {required(text_attribute("table", "",
                                  "its rows are a word's vector as a center and as a context")),
          text_attribute("words", "words", "slot of a sentence's words"),
          text_attribute("negatives", "negatives", "slot of its negatives"),
          int_attribute("window", 5, 1, 64,
                        "the reach of a word is drawn from 1 to this many words to each side"),
          float_attribute("per_pair", 5, 0, 1000,
                          "how many negatives count as much as all those that stand beside a pair"),
          int_attribute("share", 1, 1, 1024, "sentences in a row that share their negatives")};
}

}  // namespace

OperatorDef operator_skip_gram_loss() {
  OperatorDef def = loss_def(
      "skip_gram_loss",
      "Skip-grams with negative samples (word2vec): each example is a sentence with the slots "
      "`words` and `negatives`; an optional weight [B,1]; predictions are the mean probability of "
      "its pairs.",
      0, false, infer, attributes());
  def.reference = [](const ReferenceCall& call) { PlainSkipGram(call).run(); };
  def.whole_batch = true;
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new SkipGramKernel(args));
  };
  return def;
}

}  // namespace flux
