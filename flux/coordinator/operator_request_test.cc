#include "flux/coordinator/operator_request.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

class OperatorRequest : public testing::Test {
 protected:
  OperatorRequest() {
    hooks_.drain = [this](const std::string& node) {
      called_ += "drain " + node + ";";
      return node == "nobody" ? Status(Code::kNotFound, "no such node") : Status::ok();
    };
    hooks_.scale = [this](int64_t workers, int64_t servers) {
      called_ += "scale " + std::to_string(workers) + " " + std::to_string(servers) + ";";
      return Status::ok();
    };
    hooks_.move = [this](uint32_t shard, const std::string& server) {
      called_ += "move " + std::to_string(shard) + " " + server + ";";
      return Status::ok();
    };
    hooks_.rebalance = [this](bool dry_run) {
      called_ += dry_run ? "rebalance dry;" : "rebalance;";
      return Result<std::string>("shard 3 moves");
    };
  }
  int ask(const char* path, const char* body) {
    return http_status_of(run_operator_request(path, body, hooks_).status());
  }
  OperatorHooks hooks_;
  std::string called_;
};

TEST_F(OperatorRequest, GoodOnesAreHandedOn) {
  EXPECT_EQ(ask("/drain", R"({"node": "server-1"})"), 202);
  EXPECT_EQ(ask("/scale", R"({"workers": 4, "servers": 2})"), 202);
  EXPECT_EQ(ask("/scale", R"({"servers": 3})"), 202);
  EXPECT_EQ(ask("/move", R"({"shard": 12, "server": "server-0"})"), 202);
  EXPECT_EQ(ask("/rebalance", "{}"), 202);
  EXPECT_EQ(ask("/rebalance", R"({"dry_run": true})"), 202);
  EXPECT_EQ(called_,
            "drain server-1;scale 4 2;scale -1 3;move 12 server-0;rebalance;rebalance dry;");
  EXPECT_EQ(run_operator_request("/rebalance", "{}", hooks_).value(), "shard 3 moves");
  EXPECT_EQ(ask("/drain", R"({"node": "nobody"})"), 404);
}

TEST(OperatorAnswer, SaysWhatWasDone) {
  EXPECT_EQ(operator_answer(""), "{\"accepted\":true}\n");
  EXPECT_EQ(operator_answer("a \"b\""), "{\"accepted\":true,\"text\":\"a \\\"b\\\"\"}\n");
}

TEST_F(OperatorRequest, BadOnesChangeNothing) {
  const std::pair<const char*, const char*> bad[] = {
      {"/drain", ""},
      {"/drain", "{"},
      {"/drain", "[]"},
      {"/drain", "{}"},
      {"/drain", R"({"node": 1})"},
      {"/drain", R"({"node": ""})"},
      {"/drain", R"({"node": "a", "when": "now"})"},
      {"/scale", R"({"workers": "4"})"},
      {"/scale", R"({"workers": -4})"},
      {"/scale", R"({"workers": 4.5})"},
      {"/scale", R"({"workers": 99999999999999999999})"},
      {"/scale", R"({"worker": 4})"},
      {"/move", R"({"server": "a"})"},
      {"/move", R"({"shard": 1})"},
      {"/move", R"({"shard": null, "server": "a"})"},
      {"/rebalance", "[]"},
      {"/rebalance", R"({"dry_run": 1})"},
      {"/rebalance", R"({"dry": true})"},
      {"/move", R"({"shard": 4294967296, "server": "a"})"},
  };
  for (const auto& [path, body] : bad) EXPECT_EQ(ask(path, body), 400) << path << " " << body;
  EXPECT_EQ(ask("/fly", "{}"), 404);
  EXPECT_EQ(called_, "");
  hooks_ = {};
  EXPECT_EQ(ask("/drain", R"({"node": "a"})"), 400);
}

}  // namespace
}  // namespace flux
