#include "flux/nn/parameter_attrs.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/nn/graph.h"
#include "flux/nn/initial_values.h"

namespace flux {
namespace {

using Attrs = std::map<std::string, AttrValue>;

// A small network whose layer fc has these attributes besides its own.
Result<std::shared_ptr<const Graph>> graph_of(const Attrs& attrs, const std::string& op = "fc") {
  GraphBuilder builder(ModelInputs{.slots = 0, .dense = 30, .tables = {}});
  NodeSpec node{.name = "h", .op = op, .inputs = {"dense"}, .attrs = attrs, .origin = "j.yaml:3:5"};
  if (op == "fc") node.attrs["units"] = int64_t{200};
  FLUX_RETURN_IF_ERROR(builder.add(node));
  FLUX_RETURN_IF_ERROR(builder.add({"y", "fc", {"h"}, {{"units", int64_t{1}}}, ""}));
  FLUX_RETURN_IF_ERROR(builder.add({"loss", "logistic_loss", {"y", "label"}, {}, ""}));
  return builder.finish();
}

std::string refusal(const Attrs& attrs, const std::string& op = "fc") {
  const auto graph = graph_of(attrs, op);
  EXPECT_FALSE(graph.is_ok());
  return graph.is_ok() ? "" : graph.status().message();
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};
Moments moments_of(const Graph& graph, const Parameter& p) {
  const std::vector<float> flat = graph.initial_parameters(7);
  Moments m;
  double square = 0;
  for (size_t i = 0; i < p.size; ++i) {
    const double x = flat[p.offset + i];
    m.mean += x / static_cast<double>(p.size);
    square += x * x / static_cast<double>(p.size);
    m.largest = std::max(m.largest, std::abs(x));
  }
  m.deviation = std::sqrt(square - m.mean * m.mean);
  return m;
}

TEST(ParameterAttrs, InitChangesTheMatrixAndLeavesTheBias) {
  const auto plain = graph_of({}).value();
  const Parameter bias = plain->parameters()[1];
  struct Case {
    Attrs attrs;
    double deviation, largest;
  };
  const double xavier = std::sqrt(6.0 / 230), he = std::sqrt(2.0 / 30);
  const std::vector<Case> cases = {
      {{{"init", std::string("uniform")}}, 0.01 / std::sqrt(3), 0.01},
      {{{"init", std::string("normal")}, {"init_scale", 0.5}}, 0.5, 0.5 * 6},
      {{{"init", std::string("xavier")}}, xavier / std::sqrt(3), xavier},
      {{{"init", std::string("he")}, {"init_scale", 2.0}}, 2 * he, 12 * he},
      {{{"init", std::string("constant")}, {"init_scale", 0.25}}, 0, 0.25}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::get<std::string>(c.attrs.at("init")));
    const auto graph = graph_of(c.attrs).value();
    const Moments m = moments_of(*graph, graph->parameters()[0]);
    EXPECT_NEAR(m.deviation, c.deviation, 0.03 * c.deviation + 1e-6);
    EXPECT_LE(m.largest, c.largest * 1.000001);
    EXPECT_EQ(graph->parameters()[1].init, bias.init);
    EXPECT_NE(graph->hash(), plain->hash());
    EXPECT_EQ(graph->to_text(), plain->to_text()) << "a checkpoint of it can be resumed";
  }
}

TEST(ParameterAttrs, LrScaleIsForAllParameters) {
  const auto graph = graph_of({{"lr_scale", 0.5}}).value();
  EXPECT_EQ(graph->parameters()[0].lr_scale, 0.5F);
  EXPECT_EQ(graph->parameters()[1].lr_scale, 0.5F);
  EXPECT_EQ(graph->parameters()[2].lr_scale, 1.0F) << "of another layer";
}

TEST(ParameterAttrs, WhatCannotBeIsRefused) {
  const std::string at = "j.yaml:3:5: node 'h' (fc): ";
  EXPECT_EQ(refusal({{"init", std::string("xaver")}}),
            at + "'init' must be one of uniform, normal, constant, xavier, he, got 'xaver', did "
                 "you mean 'xavier'?");
  EXPECT_EQ(refusal({{"init_scale", 1.0}}),
            at + "'init_scale' needs 'init': it says how the scale is used");
  EXPECT_EQ(refusal({{"init", std::string("he")}, {"init_scale", -1.0}}),
            at + "'init_scale' must not be negative with init: he");
  EXPECT_EQ(refusal({{"lr_scale", 0.0}}),
            at + "'lr_scale' must be between 1e-06 and 1000000, got 0");
  EXPECT_EQ(refusal({{"lr_scale", 2.0}}, "relu"),
            "j.yaml:3:5: node 'h' (relu): 'lr_scale' is for layers with parameters, and this one "
            "has none");
}

TEST(ParameterAttrs, SummariesStayAsTheyAre) {
  Parameter summary;
  summary.name = "n.count";
  summary.shape = {4};
  summary.size = 4;
  summary.init = {InitKind::kConstant, 10};
  summary.update = UpdateKind::kSummary;
  Parameter scale = summary;
  scale.update = UpdateKind::kOptimizer;
  std::vector<Parameter> all = {summary, scale};
  ASSERT_TRUE(
      apply_parameter_attributes(
          {{"init", std::string("constant")}, {"init_scale", 3.0}, {"lr_scale", 0.1}}, "", &all)
          .is_ok());
  EXPECT_EQ(all[0].init.value, 10);
  EXPECT_EQ(all[0].lr_scale, 1);
  EXPECT_EQ(all[1].init.value, 3) << "a layer without a matrix";
  EXPECT_EQ(all[1].lr_scale, 0.1F);
}

TEST(ParameterAttrs, AnOperatorKeepsAnAttributeOfTheSameName) {
  Attrs attrs = {{"init", 1.0}, {"lr_scale", 2.0}, {"units", int64_t{3}}};
  AttrSpec own;
  own.name = "init";
  const Attrs taken = take_parameter_attributes({own}, &attrs);
  EXPECT_EQ(taken.size(), 1U);
  EXPECT_TRUE(taken.contains("lr_scale"));
  EXPECT_EQ(attrs.size(), 2U);
}

}  // namespace
}  // namespace flux
