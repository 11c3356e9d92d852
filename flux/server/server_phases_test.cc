// A server whose tables have rows for some slots, trained by two networks in turn, against one
// reference table for each of its tables and the scalar rule for each of its dense shards.
#include <map>

#include <gtest/gtest.h>

#include "flux/api/model_shape.h"
#include "flux/base/hash.h"
#include "flux/optimizer/reference.h"
#include "flux/server/test_push.h"
#include "flux/table/reference_table.h"

namespace flux {
namespace {

constexpr uint32_t kGroups = 2;

// Table 0 has rows for all keys, 1 and 2 for those of a group each; a phase trains 0 and 1, the
// other 0 and 2.
ServerOptions phases_options() {
  ServerOptions o = test_options();
  o.groups = kGroups;
  o.tables.resize(3);
  o.tables[1].group = 1;
  o.tables[2].name = "items";
  o.tables[2].dim = 2;
  o.tables[2].group = 2;
  o.tables[2].optimizer = {.rule = "adagrad", .lr = 0.1F};
  o.parameters = 45000;
  o.phases = {{{kDim, 1, 0}, 20000}, {{kDim, 0, 2}, 25000}};
  return o;
}

// Keys of both groups, which never have the same, in the order of the shards.
struct PhaseKeys {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin{0};
  std::vector<uint32_t> of_group{0};  // position of the first key of each group, and the end

  PhaseKeys(const ModelShape& shape, Random* random) {
    std::vector<std::vector<uint64_t>> by_shard(shape.sparse_shards);
    for (uint32_t g = 0; g < kGroups; ++g) {
      const uint64_t first = g * 100'000 + random->below(300);
      for (uint64_t key = first; key < first + 150; ++key)
        by_shard[shape.shard_of_key(key, g)].push_back(key);
    }
    for (uint32_t s = 0; s < shape.sparse_shards; ++s) {
      keys.insert(keys.end(), by_shard[s].begin(), by_shard[s].end());
      begin.push_back(static_cast<uint32_t>(keys.size()));
      if (s + 1 == shape.group_shards(of_group.size() - 1).end) of_group.push_back(begin.back());
    }
  }
  // The keys that table t has rows for.
  std::span<const uint64_t> of_table(const ModelShape& shape, size_t t) const {
    const uint32_t group = shape.table_groups[t];
    if (group == 0) return keys;
    return std::span(keys).subspan(of_group[group - 1], of_group[group] - of_group[group - 1]);
  }
  const uint32_t* counts_of(const ModelShape& shape, size_t t, const uint32_t* counts) const {
    return counts + (of_table(shape, t).data() - keys.data());
  }
};

class ServerPhases : public testing::Test {
 protected:
  ServerPhases() : server_(make_test_server(phases_options())), shape_(server_->shape()) {
    for (const TableOptions& table : phases_options().tables) tables_.emplace_back(table);
    initial_.resize(shape_.parameters);
    for (size_t i = 0; i < initial_.size(); ++i) initial_[i] = hash_uniform(i, 1, 2);
    server_->init_dense(initial_);
    for (uint32_t d = 0; d < shape_.dense_shards(); ++d) {
      const auto begin = initial_.begin() + static_cast<ptrdiff_t>(shape_.dense_begin(d));
      weights_.emplace_back(begin, begin + static_cast<ptrdiff_t>(shape_.dense_size(d)));
      states_.emplace_back(rule_->state_size(weights_[d].size()));
      rule_->init_state(states_[d].data(), weights_[d].size());
    }
  }
  std::vector<float> draw(size_t n) {
    std::vector<float> out(n);
    for (float& x : out) x = static_cast<float>(random_.uniform() - 0.5);
    return out;
  }
  // One batch of a phase, to the server and to the references.
  void push(uint32_t number, uint32_t phase) {
    const PhaseView view = shape_.phase(phase);
    const PhaseKeys keys(shape_, &random_);
    std::vector<uint32_t> counts;
    for (size_t i = 0; i < keys.keys.size(); ++i)
      counts.push_back(static_cast<uint32_t>(1 + random_.below(5)));
    std::vector<std::vector<float>> gradients;
    std::vector<const float*> tables;
    for (size_t t = 0; t < tables_.size(); ++t) {
      gradients.push_back(draw(keys.of_table(shape_, t).size() * view.dims[t]));
      tables.push_back(view.has_table(t) ? gradients[t].data() : nullptr);
    }
    const std::vector<float> dense = draw(view.parameters());
    std::vector<ShardId> shards(server_->shard_count());
    std::iota(shards.begin(), shards.end(), 0U);
    const std::vector<ShardEpoch> epochs(shards.size(), server_->options().epoch);
    PushRequest request;
    const BatchId id{
        {0, static_cast<uint16_t>(phase), 0, number / 4}, static_cast<uint8_t>(number % 4), 4};
    request.claim = {kLife, kGeometry, {id}, Verdict::kApplied};
    request.shards = shards;
    request.epochs = epochs;
    request.keys = {keys.keys.data(), keys.begin.data()};
    request.counts = counts.data();
    request.tables = tables;
    request.dense = dense.data();
    request.examples = 10;
    ASSERT_TRUE(all_are(send_push(server_.get(), request), shards.size(), Answer::kApplied));
    EXPECT_TRUE(all_are(send_push(server_.get(), request), shards.size(), Answer::kDuplicate));
    for (size_t t = 0; t < tables_.size(); ++t)
      if (view.has_table(t))
        tables_[t].push(keys.of_table(shape_, t), gradients[t].data(),
                        keys.counts_of(shape_, t, counts.data()), 1);
    for (uint32_t d = view.first_dense; d < view.last_dense; ++d)
      rule_->update(weights_[d].data(), states_[d].data(),
                    dense.data() + (shape_.dense_begin(d) - view.dense_begin), weights_[d].size(),
                    1);
  }
  void expect_equal(uint32_t phase) {
    const PhaseView view = shape_.phase(phase);
    const PhaseKeys keys(shape_, &random_);
    std::vector<std::vector<float>> rows;
    for (size_t t = 0; t < tables_.size(); ++t)
      rows.emplace_back(keys.of_table(shape_, t).size() * view.dims[t], -7.0F);
    std::vector<float*> out;
    for (size_t t = 0; t < rows.size(); ++t)
      out.push_back(view.has_table(t) ? rows[t].data() : nullptr);
    std::vector<ShardId> shards;
    for (uint32_t s = 0; s < shape_.all_shards(); ++s)
      if (s < shape_.sparse_shards || view.has_dense(s - shape_.sparse_shards)) shards.push_back(s);
    std::vector<float> dense(view.parameters());
    PullRequest pull{kLife, shards, {keys.keys.data(), keys.begin.data()}, out, dense.data()};
    pull.phase = phase;
    Status status(Code::kIo, "not called");
    server_->pull(pull, [&](const PullReply& reply) { status = reply.status; });
    ASSERT_TRUE(status.is_ok()) << status.message();
    for (size_t t = 0; t < rows.size(); ++t) {
      if (!view.has_table(t)) continue;
      std::vector<float> want(rows[t].size());
      tables_[t].pull(keys.of_table(shape_, t), want.data());
      EXPECT_EQ(rows[t], want) << "table " << t << " in phase " << phase;
    }
    for (uint32_t d = view.first_dense; d < view.last_dense; ++d) {
      const auto begin =
          dense.begin() + static_cast<ptrdiff_t>(shape_.dense_begin(d) - view.dense_begin);
      EXPECT_TRUE(std::equal(weights_[d].begin(), weights_[d].end(), begin)) << "shard " << d;
    }
  }

  Random random_{5};
  std::shared_ptr<Server> server_;
  const ModelShape shape_;
  std::vector<ReferenceTable> tables_;
  std::vector<float> initial_;
  const std::unique_ptr<const Optimizer> rule_ =
      make_reference_optimizer(phases_options().dense_optimizer);
  std::vector<std::vector<float>> weights_, states_;  // of each dense shard
};

TEST_F(ServerPhases, EachPhaseTrainsItsOwnAndTheSharedTableBitForBit) {
  ASSERT_GT(shape_.phase(1).first_dense, 0U);
  uint32_t numbers[] = {0, 0};
  for (const uint32_t phase : {0U, 0U, 1U, 0U, 1U, 1U, 0U, 1U}) {
    push(numbers[phase]++, phase);
    expect_equal(0);
    expect_equal(1);
  }
}

TEST_F(ServerPhases, WhatIsNotOfThePhaseIsNotTouched) {
  push(0, 0);
  const uint64_t before = server_->content_hash();
  const PhaseKeys keys(shape_, &random_);
  std::vector<float> row(keys.keys.size() * kDim), foreign(row.size(), -7.0F);
  const std::vector<float> untouched = foreign;
  std::vector<float> dense(shape_.parameters, -7.0F);
  std::vector<float*> out = {row.data(), row.data(), foreign.data()};
  std::vector<ShardId> shards(shape_.all_shards());  // dense ones of the other phase too
  std::iota(shards.begin(), shards.end(), 0U);
  PullRequest pull{kLife, shards, {keys.keys.data(), keys.begin.data()}, out, dense.data(), {}, 0};
  Status status(Code::kIo, "not called");
  server_->pull(pull, [&](const PullReply& reply) { status = reply.status; });
  EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(foreign, untouched);
  const auto end = dense.begin() + static_cast<ptrdiff_t>(shape_.phase(0).dense_end);
  EXPECT_EQ(std::count(dense.begin(), end, -7.0F), 0);
  EXPECT_EQ(std::count(end, dense.end(), -7.0F), dense.end() - end);
  pull.phase = 2;
  server_->pull(pull, [&](const PullReply& reply) { status = reply.status; });
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(server_->content_hash(), before);
}

}  // namespace
}  // namespace flux
