// Two tables with hints against the same two without: every pull and all content, bit for bit.
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/optimizer/optimizer.h"
#include "flux/table/sparse_shard.h"

namespace flux {
namespace {

struct Tables {
  Tables() {
    for (const uint32_t dim : {1U, 5U}) {  // three rows of the first lie in a line, numbers skip
      TableOptions options;
      options.name = "t";
      options.dim = dim;
      options.optimizer.rule = "adagrad";
      rules.push_back(std::move(make_optimizer(options.optimizer)).value());
      shards.emplace_back(options, rules.back().get(), make_row_arena(options));
    }
  }
  std::vector<std::unique_ptr<const Optimizer>> rules;
  std::vector<SparseShard> shards;
};

class RowHintsTest : public testing::Test {
 protected:
  void push(size_t table, RowHints* hints) {
    const uint32_t dim = table == 0 ? 1 : 5;
    std::vector<float> gradient(keys_.size() * dim);
    for (float& g : gradient) g = static_cast<float>(random_.normal());
    const std::vector<uint32_t> counts(keys_.size(), 2);
    hinted_.shards[table].push(keys_, gradient.data(), counts.data(), 1, hints);
    plain_.shards[table].push(keys_, gradient.data(), counts.data());
  }
  void expect_same_rows(size_t table, RowHints* hints) const {
    const uint32_t dim = table == 0 ? 1 : 5;
    std::vector<float> one(keys_.size() * dim), two(keys_.size() * dim);
    hinted_.shards[table].pull(keys_, one.data(), hints);
    plain_.shards[table].pull(keys_, two.data());
    EXPECT_EQ(one, two);
  }

  Random random_{7};
  Tables hinted_, plain_;
  std::vector<Key> keys_;
};

TEST_F(RowHintsTest, ChangeNothing) {
  for (int batch = 0; batch < 60; ++batch) {
    keys_.resize(random_.below(RowHints::kKeysMax + 1));
    for (Key& key : keys_) key = random_.below(2000);  // with repeats
    RowHints pulled, pushed;
    for (const size_t table : {0U, 1U}) expect_same_rows(table, &pulled);
    // Now and then one table alone: from then on its rows lie elsewhere than the other's.
    const size_t tables = batch % 20 == 7 ? 1 : 2;
    for (size_t table = 0; table < tables; ++table) push(table, &pushed);
  }
  for (const size_t table : {0U, 1U})
    EXPECT_EQ(hinted_.shards[table].content_hash(), plain_.shards[table].content_hash());
}

}  // namespace
}  // namespace flux
