// A bad record is named, whatever its place and its kind of data; a broken model is called that.
// The net is the real one, and every record alone gives what it gives in its batch.
#include "flux/worker/evaluated_check.h"

#include <limits>

#include <gtest/gtest.h>

#include "flux/nn/reference.h"
#include "flux/worker/test_reader.h"

namespace flux {
namespace {

constexpr uint32_t kBatch = 20;
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Rig {
  Rig()
      : graph(ctr_dnn_graph()),
        sample(make_sample(*graph, kBatch, 60, 1)),
        parameters(graph->initial_parameters(1)),
        net(std::move(Net::compile(graph, {Precision::kFp32, kBatch})).value()) {}
  NetInput input() {
    NetInput input;
    input.batch = kBatch;
    input.labels = sample.labels.data();
    input.dense = sample.dense.data();
    const size_t dim = graph->inputs().tables.begin()->second;
    input.tables = {{sample.rows[0].data(), sample.rows[0].size() / dim, 0, sample.index.data()}};
    net->set_parameters(parameters.data());
    return input;
  }
  std::string verdict() {
    const NetInput all = input();
    const double loss = net->predict(all, nullptr);
    return check_evaluated(loss, all, net.get(), TestReader(), {{0, kTestPhase, 0, 7}, 3, 9})
        .message();
  }

  std::shared_ptr<const Graph> graph;
  SampleBatch sample;
  std::vector<float> parameters;
  std::unique_ptr<Net> net;
};

TEST(EvaluatedCheck, RecordsAloneAddUpToTheBatch) {
  Rig rig;
  EXPECT_EQ(rig.verdict(), "");
  const NetInput all = rig.input();
  const double whole = rig.net->predict(all, nullptr);
  double sum = 0;
  std::vector<float> labels;
  for (uint32_t e = 0; e < kBatch; ++e)
    sum += rig.net->predict(example_of(all, rig.graph->inputs(), e, &labels), nullptr);
  EXPECT_NEAR(sum, whole, 1e-4);
}

TEST(EvaluatedCheck, OneRecordIsNamedAndTheModelIsInnocent) {
  for (const uint32_t bad : {0U, 11U, kBatch - 1}) {
    Rig rig;
    rig.sample.dense[bad * rig.graph->inputs().dense] = kInf;
    const std::string why = rig.verdict();
    EXPECT_NE(why.find("the loss at place 3 is "), why.npos) << why;
    EXPECT_NE(why.find(fmt::format("because of the record line {}:", bad)), why.npos) << why;
    EXPECT_EQ(why.find("diverged"), why.npos) << why;
    EXPECT_EQ(why.find("65535"), why.npos) << why;
  }
}

TEST(EvaluatedCheck, SomeRecordsAreCounted) {
  Rig rig;
  for (const uint32_t bad : {4U, 9U, 15U}) rig.sample.dense[bad * rig.graph->inputs().dense] = kInf;
  const std::string why = rig.verdict();
  EXPECT_NE(why.find("because of the record line 4 and 2 others:"), why.npos) << why;
}

TEST(EvaluatedCheck, AModelThatIsBrokenForEveryRecordDiverged) {
  Rig rig;
  for (float& x : rig.parameters) x = std::numeric_limits<float>::quiet_NaN();
  const std::string why = rig.verdict();
  EXPECT_NE(why.find("place 3 is nan as is that of every record in it: the model diverged"),
            why.npos)
      << why;
}

}  // namespace
}  // namespace flux
