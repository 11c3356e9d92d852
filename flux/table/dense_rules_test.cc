#include "flux/table/dense_rules.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/optimizer/reference.h"
#include "flux/table/dense_shard.h"

namespace flux {
namespace {

using O = OptimizerOptions;

std::vector<float> normals(Random& random, size_t n) {
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

std::shared_ptr<const DenseRules> make(const std::vector<DenseRange>& ranges) {
  return std::move(DenseRules::make(ranges)).value();
}

const O kAdam{.rule = "adam", .lr = 0.01F};
const O kSummary{.rule = "summary", .decay = 0.9F};

std::vector<DenseRange> mixed() {
  return {{20, kAdam, 1}, {13, kAdam, 1}, {9, kSummary, 1}, {6, kAdam, 0.25F}, {30, kAdam, 1}};
}

TEST(DenseRules, NeighboursWithTheSameSettingsAreOneRun) {
  const auto rules = make(mixed());
  EXPECT_EQ(rules->size(), 78U);
  const std::vector<DensePiece> pieces = rules->pieces(0, 78);
  std::vector<size_t> sizes;
  for (const DensePiece& piece : pieces) sizes.push_back(piece.size);
  EXPECT_EQ(sizes, (std::vector<size_t>{33, 9, 6, 30}));
  EXPECT_EQ(pieces[2].lr_scale, 0.25F);
  EXPECT_EQ(rules->sums(), (std::vector<FlatRange>{{33, 42}}));
  EXPECT_EQ(to_string(mixed()), "0..33 adam, 33..42 summary, 42..48 adam x0.25, 48..78 adam");
}

TEST(DenseRules, AShardCutsRunsAtItsEnds) {
  const auto rules = make(mixed());
  std::vector<size_t> sizes;
  for (const DensePiece& piece : rules->pieces(30, 14)) sizes.push_back(piece.size);
  EXPECT_EQ(sizes, (std::vector<size_t>{3, 9, 2}));
  EXPECT_TRUE(rules->pieces(30, 0).empty());
}

TEST(DenseRules, ARuleThatCannotBeIsRefused) {
  EXPECT_EQ(DenseRules::make({{4, {.rule = "adam", .decay = 0.5F}, 1}}).status().code(),
            Code::kInvalid);
}

// Each run by the reference of its rule, on its own.
TEST(DenseRules, EveryPieceFollowsItsOwnRule) {
  const auto rules = make(mixed());
  const size_t first = 30, size = 40;
  struct Piece {
    size_t begin, size;
    O options;
    float lr_scale;
  };
  const std::vector<Piece> pieces = {
      {0, 3, kAdam, 1}, {3, 9, kSummary, 1}, {12, 6, kAdam, 0.25F}, {18, 22, kAdam, 1}};
  Random random(1);
  const std::vector<float> start = normals(random, size);
  DenseShard shard(*rules, first, size);
  shard.init(start);
  std::vector<std::vector<float>> rows;
  for (const Piece& piece : pieces) {
    const auto rule = make_reference_optimizer(piece.options);
    std::vector<float>& row = rows.emplace_back(piece.size + rule->state_size(piece.size));
    std::copy_n(start.data() + piece.begin, piece.size, row.data());
    rule->init_state(row.data() + piece.size, piece.size);
  }
  for (int step = 0; step < 10; ++step) {
    const std::vector<float> gradient = normals(random, size);
    const float scale = step % 2 == 0 ? 1.0F : 0.5F;
    shard.push(gradient.data(), 8, scale);
    std::vector<float> out(size);
    shard.pull(out.data());
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      make_reference_optimizer(piece.options)
          ->update(rows[i].data(), rows[i].data() + piece.size, gradient.data() + piece.begin,
                   piece.size, scale * piece.lr_scale);
      for (size_t k = 0; k < piece.size; ++k)
        ASSERT_EQ(out[piece.begin + k], rows[i][k]) << "piece " << i << " weight " << k;
    }
  }
}

TEST(DenseRules, ASavedShardGoesOnAlike) {
  const auto rules = make(mixed());
  Random random(3);
  DenseShard a(*rules, 0, 78), b(*rules, 0, 78);
  a.init(normals(random, 78));
  a.push(normals(random, 78).data(), 3);
  std::string saved;
  a.save(&saved);
  ASSERT_TRUE(b.load(saved).is_ok());
  const std::vector<float> gradient = normals(random, 78);
  a.push(gradient.data(), 1);
  b.push(gradient.data(), 1);
  EXPECT_EQ(a.content_hash(), b.content_hash());
}

// What was saved before a vector could have several rules.
TEST(DenseRules, OneRunIsSavedAsOneRule) {
  const auto one = std::move(make_optimizer(kAdam)).value();
  const auto rules = make({{50, kAdam, 1}, {28, kAdam, 1}});
  Random random(4);
  const std::vector<float> start = normals(random, 78), gradient = normals(random, 78);
  DenseShard plain(one.get(), 0, 78), runs(*rules, 0, 78);
  for (DenseShard* shard : {&plain, &runs}) {
    shard->init(start);
    shard->push(gradient.data(), 3);
  }
  std::string a, b;
  plain.save(&a);
  runs.save(&b);
  EXPECT_EQ(a, b);
  DenseShard other(*make(mixed()), 0, 78);
  EXPECT_EQ(other.load(a).code(), Code::kCorrupt) << "another layout of state";
}

}  // namespace
}  // namespace flux
