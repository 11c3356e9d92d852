#include "flux/report/graph_svg.h"

#include <gtest/gtest.h>

#include "flux/base/script_test.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

std::shared_ptr<const Graph> small_net() {
  GraphBuilder builder({4, 3, {{"emb", 8}}});
  const auto add = [&](const char* name, const char* op, std::vector<std::string> inputs,
                       std::map<std::string, AttrValue> attrs) {
    NodeSpec node{name, op, std::move(inputs), std::move(attrs), "here"};
    const Status status = builder.add(node);
    EXPECT_TRUE(status.is_ok()) << status.message();
  };
  add("emb", "embedding", {}, {{"table", std::string("emb")}});
  add("x", "concat", {"emb", "dense"}, {});
  add("logit", "fc", {"x"}, {{"units", int64_t{1}}});
  add("loss", "logistic_loss", {"logit", "label"}, {});
  return builder.finish().value();
}

TEST(GraphSvg, ASmallNetAsInTheGoldenFile) {
  const std::string svg = graph_svg("small", picture_of(*small_net()));
  const std::string path = FLUX_SOURCE_DIR "/tests/golden/graph_small.svg";
  if (rewrites_scripts()) {
    ASSERT_TRUE(write_file_atomic(path, svg).is_ok());
  }
  const auto golden = read_whole_file(path, 1 << 20);
  ASSERT_TRUE(golden.is_ok()) << golden.status().message();
  EXPECT_EQ(svg, golden.value()) << "--rewrite puts in what comes out now";
}

TEST(GraphSvg, ANodeLiesBelowWhatItReads) {
  const PictureNode nodes[] = {{"a", "in", "[B,1]", "", {}},
                               {"b", "in", "[B,1]", "", {}},
                               {"c", "f", "[B,1]", "", {1}},
                               {"d", "f", "[B,1]", "", {0}},
                               {"e", "g", "[B,1]", "", {0, 2, 3}}};
  const std::string svg = graph_svg("a<b", nodes);
  EXPECT_NE(svg.find("a&#60;b"), std::string::npos);
  const auto box = [&](const std::string& name) {
    const size_t title = svg.find("<title>" + name + " = ");
    const size_t x = svg.find("x='", title) + 3, y = svg.find("y='", title) + 3;
    return std::pair(std::stoi(svg.substr(x)), std::stoi(svg.substr(y)));
  };
  EXPECT_EQ(box("a").second, box("b").second);
  EXPECT_LT(box("b").second, box("c").second);
  EXPECT_EQ(box("c").second, box("d").second);
  EXPECT_LT(box("d").first, box("c").first) << "d reads a, which is left of b";
  EXPECT_LT(box("c").second, box("e").second);
}

}  // namespace
}  // namespace flux
