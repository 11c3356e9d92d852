#include "flux/nn/net.h"

#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "flux/base/cpu.h"
#include "flux/base/hash.h"
#include "flux/base/random.h"
#include "flux/nn/members_check.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

NodeSpec node(const char* name, const char* op, std::vector<std::string> inputs,
              std::map<std::string, AttrValue> attrs = {}) {
  return {name, op, std::move(inputs), std::move(attrs), ""};
}
AttrValue text(const char* value) {
  return std::string(value);
}

CheckOptions options_of(Precision precision, uint32_t batch = 7, uint32_t batch_max = 16) {
  CheckOptions options;
  options.net.precision = precision;
  options.net.batch_max = batch_max;
  options.batch = batch;
  if (precision == Precision::kBf16) options.tolerance = 0.05;
  return options;
}

class NetTest : public testing::TestWithParam<Precision> {};

// What this CPU computes in.
std::vector<Precision> precisions_here() {
  std::vector<Precision> precisions = {Precision::kFp32};
  if (cpu_has_avx512_bf16()) precisions.push_back(Precision::kBf16);
  return precisions;
}

TEST_P(NetTest, LogisticRegression) {
  EXPECT_EQ("", check_net(logistic_regression_graph(), options_of(GetParam())));
}

// In bf16 with tanh: there a relu near zero may switch and make whole gradients differ; that its
// products are right in detail is fc_products_test's business.
TEST_P(NetTest, SmallDnnOfEveryBatchSize) {
  const AttrValue f = text(GetParam() == Precision::kBf16 ? "tanh" : "relu");
  const auto graph =
      must_build({3, 2, {{"emb", 5}}},
                 {node("emb", "embedding", {}, {{"table", text("emb")}}),
                  node("x", "concat", {"emb", "dense"}),
                  node("fc1", "fc", {"x"}, {{"units", int64_t{19}}, {"activation", f}}),
                  node("fc2", "fc", {"fc1"}, {{"units", int64_t{33}}, {"activation", f}}),
                  node("logit", "fc", {"fc2"}, {{"units", int64_t{1}}}),
                  node("loss", "logistic_loss", {"logit", "label"})});
  for (const uint32_t batch : {1U, 2U, 3U, 8U, 15U, 16U})
    EXPECT_EQ("", check_net(graph, options_of(GetParam(), batch))) << batch;
}

TEST_P(NetTest, ModelsOfTheBenchmarksOnSampledCoordinates) {
  CheckOptions options = options_of(GetParam(), 9, 24);
  options.coordinates = 8;
  options.row_count = 50;
  const auto check = [&](const std::shared_ptr<const Graph>& graph, double tolerance_bf16) {
    if (GetParam() == Precision::kBf16) options.tolerance = tolerance_bf16;
    EXPECT_EQ("", check_net(graph, options)) << graph->to_text();
  };
  check(ctr_dnn_graph(), 0.2);
  check(dcn_v2_graph(), 0.2);
  check(deepfm_graph(), 0.3);  // fm squares sums of 26 rounded rows: the logit itself is off by 0.1
}

// How a batch is divided among threads shows in no bit, also where dead units are left out.
TEST_P(NetTest, TheSameBitsWithAnyNumberOfThreads) {
  MembersCheck check;
  check.precision = GetParam();
  for (const uint32_t batch : {1000U, 333U, 63U, 1U})
    for (const float first_bias : {0.0F, -0.02F}) {
      check.batch = batch;
      check.first_bias = first_bias;
      for (const auto& graph :
           {ctr_dnn_graph(), deepfm_graph(), dcn_v2_graph(), logistic_regression_graph()})
        ASSERT_EQ("", check_members(graph, check)) << batch << ", " << first_bias;
    }
}

// Values with several consumers, inputs used twice, nested concats, a shared table, dense first.
TEST_P(NetTest, GradientsAccumulate) {
  const auto graph = must_build(
      {2, 3, {{"t", 4}, {"u", 1}}},
      {node("a", "embedding", {}, {{"table", text("t")}}),
       node("b", "embedding", {}, {{"table", text("t")}, {"combine", text("sum")}}),
       node("u", "embedding", {}, {{"table", text("u")}}),
       node("ab", "concat", {"dense", "a", "b", "a"}), node("all", "concat", {"ab", "u", "dense"}),
       node("h", "fc", {"all"}, {{"units", int64_t{24}}, {"activation", text("tanh")}}),
       node("g", "fc", {"ab"}, {{"units", int64_t{24}}, {"activation", text("relu")}}),
       node("hg", "add", {"h", "g", "h"}), node("r", "relu", {"hg"}),
       node("i", "fc", {"hg"}, {{"units", int64_t{24}}, {"bias", false}}),
       node("ri", "concat", {"r", "i", "g"}), node("logit", "fc", {"ri"}, {{"units", int64_t{1}}}),
       node("loss", "logistic_loss", {"logit", "label"})});
  EXPECT_EQ("", check_net(graph, options_of(GetParam())));
  MembersCheck members;
  members.precision = GetParam();
  EXPECT_EQ("", check_members(graph, members));
}

TEST_P(NetTest, SameInputsGiveTheSameBits) {
  const auto graph = ctr_dnn_graph();
  const SampleBatch sample = make_sample(*graph, 100, 500, 3);
  const std::vector<float> flat = graph->initial_parameters(5);
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    auto net = Net::compile(graph, {GetParam(), 100, false}).value();
    net->set_parameters(flat.data());
    std::vector<float> all(flat.size() + 5000);
    NetGradients gradients{all.data(), {all.data() + flat.size()}};
    for (int step = 0; step < 2; ++step) net->train(sample.view(), &gradients, nullptr);
    if (round == 0) first = all;
    EXPECT_EQ(first, all);
  }
}

TEST_P(NetTest, NetsOnTwoThreadsDoNotDisturbEachOther) {
  const auto graph = ctr_dnn_graph();
  const SampleBatch sample = make_sample(*graph, 64, 200, 3);
  const std::vector<float> flat = graph->initial_parameters(5);
  std::vector<std::vector<float>> all(3, std::vector<float>(flat.size() + 2000));
  const auto work = [&](std::vector<float>& out) {
    auto net = Net::compile(graph, {GetParam(), 64, false}).value();
    NetGradients gradients{out.data(), {out.data() + flat.size()}};
    for (int step = 0; step < 3; ++step) {
      net->set_parameters(flat.data());
      net->train(sample.view(), &gradients, nullptr);
    }
  };
  work(all[0]);
  std::thread one([&] { work(all[1]); }), two([&] { work(all[2]); });
  one.join();
  two.join();
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

TEST_P(NetTest, EmptyBatchGivesZeros) {
  const auto graph = logistic_regression_graph();
  auto net = Net::compile(graph, {GetParam(), 4, false}).value();
  const std::vector<float> flat = graph->initial_parameters(1);
  net->set_parameters(flat.data());
  SampleBatch sample = make_sample(*graph, 1, 3, 1);
  sample.batch = 0;
  std::vector<float> parameters(flat.size(), 1), rows(3, 1);
  NetGradients gradients{parameters.data(), {rows.data()}};
  EXPECT_EQ(0, net->train(sample.view(), &gradients, nullptr));
  EXPECT_EQ(parameters, std::vector<float>(flat.size(), 0));
  EXPECT_EQ(rows, std::vector<float>(3, 0));
  EXPECT_EQ(0, net->predict(sample.view(), nullptr));
}

// Of all pairs, ties by half: the AUC.
double share_ranked_right(const std::vector<float>& positives,
                          const std::vector<float>& negatives) {
  uint64_t halves = 0;
  for (const float p : positives)
    for (const float n : negatives) halves += (p > n ? 1U : 0U) + (p >= n ? 1U : 0U);
  return static_cast<double>(halves) / 2 / static_cast<double>(positives.size()) /
         static_cast<double>(negatives.size());
}

// AUC of the last third of a short training with plain SGD, on data with a hidden truth.
double trained_auc(Precision precision) {
  const auto graph = must_build(
      {6, 4, {{"emb", 8}}},
      {node("emb", "embedding", {}, {{"table", text("emb")}}),
       node("x", "concat", {"emb", "dense"}),
       node("fc1", "fc", {"x"}, {{"units", int64_t{64}}, {"activation", text("relu")}}),
       node("fc2", "fc", {"fc1"}, {{"units", int64_t{32}}, {"activation", text("relu")}}),
       node("logit", "fc", {"fc2"}, {{"units", int64_t{1}}}),
       node("loss", "logistic_loss", {"logit", "label"})});
  constexpr uint32_t kBatch = 200, kRows = 300, kSteps = 300;
  auto net = Net::compile(graph, {precision, kBatch, false}).value();
  std::vector<float> flat = graph->initial_parameters(1), gradient(flat.size());
  std::vector<float> rows = make_sample(*graph, 1, kRows, 9).rows[0], row_gradient(rows.size());
  std::vector<float> predictions(kBatch);
  std::vector<float> positives, negatives;
  for (uint32_t step = 0; step < kSteps; ++step) {
    SampleBatch batch = make_sample(*graph, kBatch, kRows, 100 + step);
    Random random(step);
    for (uint32_t b = 0; b < kBatch; ++b) {
      double z = 2.0 * batch.dense[b * 4];
      for (uint32_t s = 0; s < 6; ++s) z += 2.0 * hash_uniform(batch.index[b * 6 + s], 7, 0) - 1.0;
      batch.labels[b] = random.chance(1 / (1 + std::exp(-2 * z))) ? 1.0F : 0.0F;
    }
    batch.rows[0] = rows;
    NetGradients gradients{gradient.data(), {row_gradient.data()}};
    net->set_parameters(flat.data());
    net->train(batch.view(), &gradients, predictions.data());
    for (uint32_t b = 0; b < kBatch && step >= kSteps * 2 / 3; ++b)
      (batch.labels[b] > 0.5F ? positives : negatives).push_back(predictions[b]);
    for (size_t i = 0; i < flat.size(); ++i) flat[i] -= 0.5F * gradient[i];
    for (size_t i = 0; i < rows.size(); ++i) rows[i] -= 5.0F * row_gradient[i];
  }
  return share_ranked_right(positives, negatives);
}

TEST(Precision, Bf16LearnsAsWellAsFp32) {
  const double fp32 = trained_auc(Precision::kFp32);
  EXPECT_GT(fp32, 0.8);
  if (!cpu_has_avx512_bf16()) {
    const auto refused = choose_precision("bf16");
    ASSERT_FALSE(refused.is_ok());
    EXPECT_NE(refused.status().message().find("no AVX512-BF16"), std::string::npos);
    return;
  }
  EXPECT_NEAR(trained_auc(Precision::kBf16), fp32, 0.001);
}

INSTANTIATE_TEST_SUITE_P(Precisions, NetTest, testing::ValuesIn(precisions_here()),
                         [](const auto& info) { return precision_name(info.param); });

TEST(Precision, UnknownWishIsRefusedWithASuggestion) {
  const auto result = choose_precision("bf61");
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ("precision 'bf61' is unknown, did you mean 'bf16'?; allowed: auto, fp32, bf16",
            result.status().message());
}

TEST(Net, AModelWithoutParametersCountsExamplesWithOneThatNeverMoves) {
  ModelInputs inputs{2, 0, {{"t", 1}}};
  inputs.many_keys = true;
  const auto graph = must_build(
      inputs,
      {{"z", "embedding", {}, {{"table", std::string("t")}, {"combine", std::string("sum")}}, ""},
       {"l", "logistic_loss", {"z", "label"}, {}, ""}});
  ASSERT_EQ(graph->parameter_count(), 1U);
  auto net = Net::compile(graph, {});
  ASSERT_TRUE(net.is_ok());
  const SampleBatch sample = make_sample(*graph, 5, 7, 1);
  std::vector<float> parameter(1, 7.0F), rows(7, 7.0F);
  NetGradients gradients{parameter.data(), {rows.data()}};
  net.value()->train(sample.view(), &gradients, nullptr);
  EXPECT_EQ(parameter[0], 0.0F);
}

}  // namespace
}  // namespace flux
