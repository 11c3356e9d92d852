#include <cmath>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/nn/operator.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

using Attrs = std::map<std::string, AttrValue>;

ModelInputs sentences(uint32_t dim) {
  ModelInputs inputs{3, 0, {{"t", dim}}};
  inputs.slot_names = {"words", "other", "negatives"};
  inputs.many_keys = true;
  inputs.labels = {};
  inputs.weights = true;
  return inputs;
}

NodeSpec loss(Attrs attrs, bool weights) {
  attrs.insert({"table", std::string("t")});
  return {"l", "skip_gram_loss",
          weights ? std::vector<std::string>{"weight"} : std::vector<std::string>{},
          std::move(attrs), "job.yaml:3:5"};
}

std::shared_ptr<const Graph> graph_of(uint32_t half, const Attrs& attrs, bool weights = false) {
  return must_build(sentences(2 * half), {loss(attrs, weights)});
}

// make_sample() has few keys in a slot; these sentences cross the borders of pieces.
SampleBatch long_sentences(const Graph& graph, uint32_t batch, uint64_t seed) {
  SampleBatch sample = make_sample(graph, batch, 7, seed);
  Random random(seed);
  sample.index.clear();
  sample.begin.assign(1, 0);
  for (uint32_t i = 0; i < batch * graph.inputs().slots; ++i) {
    for (uint64_t left = random.below(i % 3 == 2 ? 35 : 150); left > 0; --left)
      sample.index.push_back(static_cast<uint32_t>(random.below(sample.row_count)));
    sample.begin.push_back(static_cast<uint32_t>(sample.index.size()));
  }
  return sample;
}

struct Trained {
  double loss = 0;
  std::vector<float> gradient, predictions;
};

Trained train(const std::shared_ptr<const Graph>& graph, const SampleBatch& sample) {
  NetOptions options;
  options.batch_max = sample.batch;
  const auto net = Net::compile(graph, options).value();
  Trained out;
  out.gradient.assign(sample.rows[0].size(), 7.0F);
  out.predictions.resize(sample.batch);
  float counter = 0;
  NetGradients gradients{&counter, {out.gradient.data()}};
  out.loss = net->train(sample.view(), &gradients, out.predictions.data());
  std::vector<float> again(sample.batch);
  EXPECT_EQ(out.loss, net->predict(sample.view(), again.data()));
  EXPECT_EQ(out.predictions, again);
  return out;
}

double reference_loss(const Graph& graph, const SampleBatch& sample,
                      const std::vector<double>& rows) {
  return run_reference(graph, sample, {0}, {rows}).loss_sum;
}

void expect_numeric_gradient(const Graph& graph, const SampleBatch& sample, const Trained& got) {
  std::vector<double> rows(sample.rows[0].begin(), sample.rows[0].end());
  const double whole = reference_loss(graph, sample, rows);
  EXPECT_NEAR(whole, got.loss, 2e-5 * std::fabs(whole));
  double wrong = 0, norm = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    constexpr double kNudge = 1e-5;
    rows[i] += kNudge;
    const double above = reference_loss(graph, sample, rows);
    rows[i] -= 2 * kNudge;
    const double below = reference_loss(graph, sample, rows);
    rows[i] += kNudge;
    const double want = (above - below) / (2 * kNudge * sample.batch);
    wrong += (want - got.gradient[i]) * (want - got.gradient[i]);
    norm += want * want;
  }
  EXPECT_LE(std::sqrt(wrong), 1e-4 * std::sqrt(norm));
}

TEST(SkipGramLoss, ForwardAndGradientOfEveryDim) {
  uint64_t seed = 1;
  for (const uint32_t half : {1U, 3U, 15U, 16U, 17U, 100U, 129U, 300U}) {
    CheckOptions options;
    options.row_count = 9;  // words repeat, also as negatives
    options.seed = ++seed;
    EXPECT_EQ("", check_net(graph_of(half, {}), options)) << half;
    const Attrs attrs = {{"window", int64_t{2}}, {"share", int64_t{3}}};
    EXPECT_EQ("", check_net(graph_of(half, attrs, true), options)) << half;
  }
}

TEST(SkipGramLoss, LongSentencesOfEveryWindowShareAndWeight) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    const auto whole = [&](uint64_t most) { return static_cast<int64_t>(1 + random.below(most)); };
    const Attrs attrs = {{"window", whole(8)},
                         {"share", whole(4)},
                         {"per_pair", static_cast<double>(random.below(4)) * 2.5}};
    const auto graph = graph_of(static_cast<uint32_t>(whole(2)), attrs, random.chance(0.5));
    const SampleBatch sample = long_sentences(*graph, static_cast<uint32_t>(whole(3)), seed);
    SCOPED_TRACE(seed);
    expect_numeric_gradient(*graph, sample, train(graph, sample));
  }
}

// A batch is trained again elsewhere, or after a kill: the same bits.
TEST(SkipGramLoss, DependsOnTheBatchAlone) {
  const auto graph = graph_of(5, {});
  SampleBatch sample = long_sentences(*graph, 4, 1);
  const Trained first = train(graph, sample), again = train(graph, sample);
  EXPECT_EQ(first.gradient, again.gradient);
  sample.noise += 1;
  EXPECT_NE(first.loss, train(graph, sample).loss);  // other windows
}

// A table that another node reads too: gradients of both add up.
TEST(SkipGramLoss, SharesATableWithAnotherNode) {
  for (const bool first : {true, false}) {
    std::vector<NodeSpec> nodes = {
        {"e", "embedding", {}, {{"table", std::string("t")}, {"combine", std::string("sum")}}, ""},
        {"s", "reduce_sum", {"e"}, {}, ""},
        {"n", "negative_sampling", {"s", "s"}, {}, ""}};
    nodes.insert(first ? nodes.begin() : nodes.end(), loss({}, false));
    EXPECT_EQ("", check_net(must_build(sentences(10), nodes), {})) << first;
  }
}

std::string refusal(const ModelInputs& inputs, const Attrs& attrs) {
  return GraphBuilder(inputs).add(loss(attrs, false)).message();
}

TEST(SkipGramLoss, SaysWhatIsWrong) {
  const auto expect = [](const std::string& what, const std::string& message) {
    EXPECT_NE(std::string::npos, message.find(what)) << message;
  };
  expect("job.yaml:3:5", refusal(sentences(5), {}));
  expect("the dim of table 't' must be even, got 5", refusal(sentences(5), {}));
  expect("no slot 'word', did you mean 'words'?",
         refusal(sentences(6), {{"words", std::string("word")}}));
  expect("two slots", refusal(sentences(6), {{"negatives", std::string("words")}}));
  expect("no table named 'u'", refusal(sentences(6), {{"table", std::string("u")}}));
  ModelInputs one_key = sentences(6);
  one_key.many_keys = false;
  expect("any number of keys", refusal(one_key, {}));
}

}  // namespace
}  // namespace flux
