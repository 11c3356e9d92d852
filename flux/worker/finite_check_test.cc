// Whatever is broken (a row, a dense input, a parameter of any layer, or an overflow), the check
// before the push sees it, in both precisions; a good batch passes. The net is the real one.
#include "flux/worker/finite_check.h"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "flux/base/cpu.h"
#include "flux/nn/net.h"
#include "flux/nn/reference.h"
#include "flux/worker/test_reader.h"

namespace flux {
namespace {

constexpr uint32_t kShards = 4, kBatch = 20;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

constexpr uint32_t kTables[] = {0};  // of the network -> of the model

// One batch of a model, computed.
struct Rig {
  Rig(std::shared_ptr<const Graph> model, Precision precision)
      : graph(std::move(model)),
        dim(graph->inputs().tables.begin()->second),
        shape{kShards, {dim}, graph->parameter_count()},
        work(shape),
        parameters(graph->initial_parameters(1)),
        net(std::move(Net::compile(graph, {precision, kBatch, false})).value()) {
    const SampleBatch sample = make_sample(*graph, kBatch, 60, 1);
    std::vector<uint64_t> keys;
    for (const uint32_t row : sample.index) keys.push_back(1000 + row);
    work.plan.build(keys);
    work.size_for(shape, 0);
    for (size_t i = 0; i < work.plan.unique(); ++i)
      for (uint32_t d = 0; d < dim; ++d)
        work.rows[0][i * dim + d] = sample.rows[0][(work.plan.keys()[i] - 1000) * dim + d];
    work.batch.size = kBatch;
    work.batch.labels = sample.labels;
    work.batch.dense_values = sample.dense;
    work.item.id = {{0, 0, 0, 7}, 3, 9};
    work.item.reader = std::make_shared<TestReader>();
  }
  Team team{2};
  std::string verdict() {
    NetInput input;
    input.batch = kBatch;
    input.labels = work.batch.labels.data();
    input.dense = work.batch.dense_values.data();
    input.tables = {{work.rows[0].data(), work.plan.unique(), 0, work.plan.index().data()}};
    NetGradients gradients{work.dense_gradient.data(), {work.row_gradients[0].data()}};
    net->set_parameters(parameters.data());
    std::vector<float> predictions(kBatch);
    const double loss = net->train(input, &gradients, predictions.data());
    return why_refused({&work, graph.get(), kTables, loss, predictions.data(), parameters.data()},
                       &team);
  }

  std::shared_ptr<const Graph> graph;
  uint32_t dim;
  ModelShape shape;
  BatchWork work;
  std::vector<float> parameters;
  std::unique_ptr<Net> net;
};

void for_each_rig(const std::function<void(Rig*)>& test) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    if (precision == Precision::kBf16 && !cpu_has_avx512_bf16()) continue;
    for (const auto& graph : {ctr_dnn_graph(), logistic_regression_graph()}) {
      SCOPED_TRACE(precision_name(precision));
      Rig rig(graph, precision);
      test(&rig);
    }
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(FiniteCheck, AGoodBatchPasses) {
  for_each_rig([](Rig* rig) { EXPECT_EQ(rig->verdict(), ""); });
}

TEST(FiniteCheck, ABrokenRowIsSeenAndNamedAsBrokenBefore) {
  for (const float bad : {kNan, kInf, -kInf})
    for_each_rig([&](Rig* rig) {
      const size_t row = rig->work.plan.unique() / 2;
      rig->work.rows[0][row * rig->dim + rig->dim / 2] = bad;
      const std::string why = rig->verdict();
      EXPECT_TRUE(has(why, "broken before this batch (table ")) << why;
      EXPECT_TRUE(has(why, fmt::format("at key {})", rig->work.plan.keys()[row]))) << why;
      EXPECT_TRUE(has(why, "data: place 3")) << why;
    });
}

TEST(FiniteCheck, ABrokenInputIsSeenAndTheModelIsInnocent) {
  for (const float bad : {kNan, kInf, -kInf})
    for_each_rig([&](Rig* rig) {
      rig->work.batch.dense_values[rig->work.batch.dense_values.size() / 2 + 1] = bad;
      const std::string why = rig->verdict();
      EXPECT_FALSE(why.empty()) << bad;
      EXPECT_FALSE(has(why, "broken before")) << why;
    });
}

TEST(FiniteCheck, ABrokenParameterOfAnyLayerIsSeen) {
  for (const float bad : {kNan, kInf})
    for_each_rig([&](Rig* rig) {
      for (const Parameter& p : rig->graph->parameters()) {
        const float good = rig->parameters[p.offset + p.size / 2];
        rig->parameters[p.offset + p.size / 2] = bad;
        const std::string why = rig->verdict();
        EXPECT_TRUE(has(why, fmt::format("broken before this batch ({} is", p.name)))
            << p.name << ": " << why;
        rig->parameters[p.offset + p.size / 2] = good;
      }
      EXPECT_EQ(rig->verdict(), "") << "nothing is left of it";
    });
}

// As behind a column of zeros: the batch was computed without meeting it.
TEST(FiniteCheck, ABrokenParameterThatNothingMetIsSeen) {
  for_each_rig([](Rig* rig) {
    ASSERT_EQ(rig->verdict(), "");
    const Parameter& p = rig->graph->parameters().front();
    std::vector<float> broken = rig->parameters;
    broken[p.offset] = kNan;
    const std::vector<float> predictions(kBatch);
    const auto why = [&](const std::vector<float>& parameters) {
      return why_refused(
          {&rig->work, rig->graph.get(), kTables, 1.0, predictions.data(), parameters.data()},
          &rig->team);
    };
    EXPECT_EQ(why(rig->parameters), "");
    EXPECT_TRUE(has(why(broken), "a dense parameter is not finite; data: place 3")) << why(broken);
    EXPECT_TRUE(has(why(broken), fmt::format("({} is nan at element 0)", p.name))) << why(broken);
  });
}

TEST(FiniteCheck, AnOverflowOfFiniteNumbersIsSeen) {
  for_each_rig([](Rig* rig) {
    for (uint32_t d = 0; d < 3; ++d) rig->work.batch.dense_values[d] = 3e38F;
    for (float& x : rig->parameters) x *= 100;
    const std::string why = rig->verdict();
    EXPECT_FALSE(why.empty());
    EXPECT_FALSE(has(why, "broken before")) << why;
  });
}

// One record of a linear model is bad: it is named; if two are, none is.
TEST(FiniteCheck, TheOnlyBadRecordIsNamed) {
  Rig rig(logistic_regression_graph(), Precision::kFp32);
  const uint32_t dense = rig.graph->inputs().dense;
  rig.work.batch.dense_values[5 * dense] = kNan;
  EXPECT_TRUE(has(rig.verdict(), "; record: line 5")) << rig.verdict();
  rig.work.batch.dense_values[9 * dense] = kNan;
  EXPECT_FALSE(has(rig.verdict(), "record:")) << rig.verdict();
}

TEST(FiniteCheck, TheReasonIsBounded) {
  class LongReader final : public BlockReader {
   public:
    Status read_batch(uint32_t, Batch*) const override { return Status::ok(); }
    std::string describe(uint32_t) const override { return std::string(100'000, 'x'); }
  };
  Rig rig(logistic_regression_graph(), Precision::kFp32);
  rig.work.item.reader = std::make_shared<LongReader>();
  rig.work.batch.dense_values[0] = kNan;
  EXPECT_EQ(rig.verdict().size(), kRefusalBytesMax);
}

}  // namespace
}  // namespace flux
