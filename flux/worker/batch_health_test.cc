// What is measured of batches: against sums made by hand, and with a real network whose units die.
#include "flux/worker/batch_health.h"

#include <cmath>

#include <gtest/gtest.h>

#include "flux/nn/net.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

constexpr uint32_t kBatch = 100;

NodeSpec layer(std::string name, std::string op, std::vector<std::string> inputs,
               std::map<std::string, AttrValue> attrs = {}) {
  return {std::move(name), std::move(op), std::move(inputs), std::move(attrs), ""};
}

// A deep network over dense inputs: 16 units behind a relu.
std::shared_ptr<const Graph> network(const std::string& loss, uint32_t labels = 1) {
  ModelInputs inputs;
  inputs.dense = 3;
  inputs.labels.clear();
  for (uint32_t l = 0; l < labels; ++l) inputs.labels.push_back(fmt::format("label{}", l));
  std::vector<NodeSpec> nodes = {
      layer("h1", "fc", {"dense"}, {{"units", int64_t{16}}, {"activation", std::string("relu")}})};
  for (uint32_t l = 0; l < labels; ++l) {
    nodes.push_back(layer(fmt::format("y{}", l), "fc", {"h1"}, {{"units", int64_t{1}}}));
    nodes.push_back(
        layer(fmt::format("loss{}", l), loss, {fmt::format("y{}", l), fmt::format("label{}", l)}));
  }
  return must_build(inputs, nodes);
}

struct Rig {
  explicit Rig(std::shared_ptr<const Graph> model)
      : graph(std::move(model)),
        shape{1, {}, graph->parameter_count()},
        work(shape),
        parameters(graph->initial_parameters(1)),
        predictions(kBatch * graph->heads().size()),
        net(std::move(Net::compile(graph, {Precision::kFp32, kBatch, false})).value()) {
    work.plan.build(std::vector<uint64_t>{});
    work.size_for(shape, 0);
    work.batch.size = kBatch;
    work.batch.labels.resize(kBatch * graph->heads().size());
    for (uint32_t i = 0; i < work.batch.labels.size(); ++i)
      work.batch.labels[i] = i % 4 == 0 ? 1.0F : 0.0F;
    for (uint32_t i = 0; i < kBatch * 3; ++i)
      work.batch.dense_values.push_back(static_cast<float>(i % 7) - 3.0F);
  }
  double train() {
    NetInput input;
    input.batch = kBatch;
    input.labels = work.batch.labels.data();
    input.dense = work.batch.dense_values.data();
    NetGradients gradients{work.dense_gradient.data(), {}};
    net->set_parameters(parameters.data());
    return net->train(input, &gradients, predictions.data());
  }
  // So many batches of the same.
  std::vector<HealthPiece> pieces(uint32_t batches) {
    for (uint32_t b = 0; b < batches; ++b) health.add(*graph, 0, work, predictions.data(), train());
    std::vector<HealthPiece> out;
    health.tell(&out);
    return out;
  }

  std::shared_ptr<const Graph> graph;
  ModelShape shape;
  BatchWork work;
  std::vector<float> parameters, predictions;
  std::unique_ptr<Net> net;
  BatchHealth health{3};
};

TEST(BatchHealth, PiecesAreNumberedAndFew) {
  Rig rig(network("logistic_loss"));
  EXPECT_TRUE(rig.pieces(7).empty());
  std::vector<HealthPiece> pieces = rig.pieces(1);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].lane, 3U);
  EXPECT_EQ(pieces[0].number, 1U);
  EXPECT_EQ(pieces[0].examples, 800U);
  EXPECT_EQ(pieces[0].batches, 8U);
  HealthTold told;
  told.add(pieces);
  told.leave_new(&pieces);
  EXPECT_TRUE(pieces.empty());
  pieces = rig.pieces(160);
  ASSERT_EQ(pieces.size(), 21U);
  told.leave_new(&pieces);
  EXPECT_EQ(pieces.front().number, 2U);
  pieces = rig.pieces(2000);
  ASSERT_EQ(pieces.size(), 64U);
  EXPECT_EQ(pieces.front().number + 63, pieces.back().number);
}

TEST(BatchHealth, TheLossOfAHeadIsThatOfTheNetwork) {
  for (const char* loss : {"logistic_loss", "mse_loss"}) {
    Rig rig(network(loss));
    const double of_batch = rig.train();
    const HealthPiece piece = rig.pieces(8).at(0);
    ASSERT_EQ(piece.heads.size(), 1U);
    const HeadHealth& head = piece.heads[0];
    EXPECT_EQ(head.name, "");
    EXPECT_EQ(head.examples, 8 * kBatch);
    EXPECT_EQ(head.batches, 8U);
    EXPECT_NEAR(head.loss, 8 * of_batch, 1e-3) << loss;
    EXPECT_NEAR(piece.loss, 8 * of_batch, 1e-6);
    EXPECT_EQ(head.label, 8 * kBatch / 4);
    const double entropy = -0.25 * std::log(0.25) - 0.75 * std::log(0.75);
    const double constant = head.kind == HeadKind::kSquares ? 0.25 * 0.75 : entropy;
    EXPECT_NEAR(head.constant / (8 * kBatch), constant, 2e-3) << loss;
    EXPECT_GT(piece.norm, 0);
  }
}

TEST(BatchHealth, HeadsAreTold) {
  Rig rig(network("logistic_loss", 2));
  const HealthPiece piece = rig.pieces(8).at(0);
  ASSERT_EQ(piece.heads.size(), 2U);
  EXPECT_EQ(piece.heads[0].name, "loss0");
  EXPECT_EQ(piece.heads[1].name, "loss1");
}

TEST(BatchHealth, OtherLossesAreNoHeads) {
  for (const char* loss : {"hinge_loss", "focal_loss"}) {
    Rig rig(network(loss));
    const HealthPiece piece = rig.pieces(8).at(0);
    EXPECT_TRUE(piece.heads.empty()) << loss;
    EXPECT_GT(piece.loss, 0);
  }
}

TEST(BatchHealth, UnitsThatAnswerNothingAreDead) {
  for (const uint32_t dead : {0U, 5U, 16U}) {
    Rig rig(network("logistic_loss"));
    const Parameter* bias = nullptr;
    for (const Parameter& p : rig.graph->parameters())
      if (p.name == "h1.bias") bias = &p;
    ASSERT_NE(bias, nullptr);
    for (uint32_t u = 0; u < 16; ++u)
      rig.parameters[bias->offset + u] = u < dead ? -1000.0F : 10.0F;
    const HealthPiece piece = rig.pieces(8).at(0);
    ASSERT_EQ(piece.layers.size(), 1U);
    EXPECT_EQ(piece.layers[0].name, "h1");
    EXPECT_EQ(piece.layers[0].units, 16U);
    EXPECT_EQ(piece.layers[0].dead, dead);
  }
}

TEST(BatchHealth, SurePredictionsThatAreWrong) {
  Rig rig(network("logistic_loss"));
  rig.predictions.assign(kBatch, 1.0F - 1e-6F);
  for (int b = 0; b < 8; ++b) rig.health.add(*rig.graph, 0, rig.work, rig.predictions.data(), 1);
  std::vector<HealthPiece> pieces;
  rig.health.tell(&pieces);
  ASSERT_EQ(pieces.size(), 1U);
  const HeadHealth& head = pieces[0].heads[0];
  EXPECT_EQ(head.sure, 8 * kBatch);
  EXPECT_EQ(head.sure_wrong, 8 * kBatch * 3 / 4);
  EXPECT_LT(head.sure_expected, 1);
}

}  // namespace
}  // namespace flux
