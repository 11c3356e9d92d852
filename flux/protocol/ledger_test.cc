// The ledger against a plain map from batch to verdict, and its encoding against damage.
#include "flux/protocol/ledger.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

constexpr uint32_t kPasses = 3, kPhases = 2, kEpochs = 2, kBlocks = 150;

uint8_t batches_of(uint32_t block) {
  return block % 7 == 0 ? 1 : block % 5 == 0 ? 32 : static_cast<uint8_t>(1 + block % 32);
}

BatchId random_id(Random* random) {
  BatchId id;
  id.block.pass = static_cast<uint32_t>(random->below(kPasses));
  id.block.phase = static_cast<uint16_t>(random->below(kPhases));
  id.block.epoch = static_cast<uint16_t>(random->below(kEpochs));
  id.block.block = static_cast<uint32_t>(random->below(kBlocks));
  id.batches_in_block = batches_of(id.block.block);
  id.batch = static_cast<uint8_t>(random->below(id.batches_in_block));
  return id;
}

Verdict random_verdict(Random* random) {
  return random->chance(0.97) ? Verdict::kApplied
                              : static_cast<Verdict>(1 + random->below(kVerdicts - 1));
}

// What the ledger promises, in the plainest form.
class Reference {
 public:
  std::optional<Verdict> find(const BatchId& id) const {
    if (id.block.pass < watermark) return Verdict::kApplied;
    const auto at = verdicts.find(id);
    return at == verdicts.end() ? std::nullopt : std::optional(at->second);
  }
  uint32_t marked(const BlockId& block) const {
    if (block.pass < watermark) return ~0U;
    uint32_t mask = 0;
    bool all_applied = true;
    const uint8_t n = batches_of(block.block);
    for (uint8_t b = 0; b < n; ++b) {
      const auto verdict = find(BatchId{block, b, n});
      if (verdict) mask |= 1U << b;
      all_applied = all_applied && verdict == Verdict::kApplied;
    }
    return all_applied ? ~0U : mask;
  }
  std::array<uint64_t, kVerdicts> totals(uint32_t pass) const {
    std::array<uint64_t, kVerdicts> sum{};
    for (const auto& [id, verdict] : verdicts)
      if (id.block.pass == pass) ++sum[static_cast<size_t>(verdict)];
    return sum;
  }
  void close_below(uint32_t pass) {
    watermark = pass;
    std::erase_if(verdicts, [&](const auto& entry) { return entry.first.block.pass < pass; });
  }

  std::map<BatchId, Verdict> verdicts;
  uint32_t watermark = 0;
};

void expect_equal(const Ledger& ledger, const Reference& reference) {
  EXPECT_EQ(ledger.watermark(), reference.watermark);
  BlockId block;
  for (block.pass = 0; block.pass < kPasses; ++block.pass) {
    if (block.pass >= reference.watermark) {
      EXPECT_EQ(ledger.totals(block.pass), reference.totals(block.pass));
    }
    for (block.phase = 0; block.phase < kPhases; ++block.phase)
      for (block.epoch = 0; block.epoch < kEpochs; ++block.epoch)
        for (block.block = 0; block.block < kBlocks; ++block.block) {
          ASSERT_EQ(ledger.marked(block), reference.marked(block)) << to_string(block);
          const uint8_t n = batches_of(block.block);
          for (uint8_t b = 0; b < n; ++b) {
            const BatchId id{block, b, n};
            ASSERT_EQ(ledger.find(id), reference.find(id)) << to_string(id);
          }
        }
  }
}

std::string encoded(const Ledger& ledger) {
  ByteWriter out;
  ledger.encode(&out);
  return out.take();
}

Ledger small_ledger(uint64_t seed, int marks) {
  Random random(seed);
  Ledger ledger;
  for (int i = 0; i < marks; ++i) {
    BatchId id = random_id(&random);
    id.block.block %= 3;
    id.batches_in_block = 2;
    id.batch %= 2;
    if (!ledger.find(id)) ledger.mark(id, random_verdict(&random));
  }
  return ledger;
}

TEST(Ledger, EqualsAPlainMap) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Random random(seed);
    Ledger ledger;
    Reference reference;
    for (int i = 0; i < 40000; ++i) {
      const BatchId id = random_id(&random);
      ASSERT_EQ(ledger.find(id), reference.find(id)) << to_string(id);
      if (reference.find(id)) continue;
      const Verdict verdict = random_verdict(&random);
      ledger.mark(id, verdict);
      reference.verdicts[id] = verdict;
    }
    expect_equal(ledger, reference);
    for (uint32_t pass = 1; pass <= kPasses; ++pass) {
      ledger.close_below(pass);
      reference.close_below(pass);
      expect_equal(ledger, reference);
    }
  }
}

TEST(Ledger, OrderOfMarksDoesNotMatter) {
  Ledger forward, backward;
  for (uint8_t b = 0; b < 20; ++b) forward.mark({{0, 0, 0, b / 4U}, uint8_t(b % 4), 4}, {});
  for (int b = 19; b >= 0; --b) backward.mark({{0, 0, 0, uint32_t(b) / 4U}, uint8_t(b % 4), 4}, {});
  EXPECT_EQ(forward, backward);
  EXPECT_EQ(encoded(forward), encoded(backward));
}

TEST(Ledger, DecodesWhatItEncodes) {
  Random random(4);
  Ledger ledger;
  ledger.close_below(1);
  for (int i = 0; i < 20000; ++i) {
    const BatchId id = random_id(&random);
    if (!ledger.find(id)) ledger.mark(id, random_verdict(&random));
    if (i % 2000 != 0) continue;
    const std::string bytes = encoded(ledger);
    ByteReader in(bytes);
    const auto back = Ledger::decode(&in);
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    EXPECT_EQ(in.left(), 0U);
    EXPECT_EQ(back.value(), ledger);
  }
}

TEST(Ledger, EveryTruncationIsCorrupt) {
  const std::string bytes = encoded(small_ledger(5, 40));
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(std::string_view(bytes).substr(0, size));
    const auto back = Ledger::decode(&in);
    ASSERT_FALSE(back.is_ok()) << size;
    EXPECT_EQ(back.status().code(), Code::kCorrupt);
  }
}

// Damage may give another ledger (checksums are the file's business), but never one that this code
// could not have written: it encodes to the very bytes that were read.
TEST(Ledger, DamagedBytesDecodeToALedgerOrNotAtAll) {
  Random random(6);
  size_t refused = 0, taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = encoded(small_ledger(random.next(), 12));
    for (uint64_t flips = 1 + random.below(3); flips > 0; --flips)
      bytes[random.below(bytes.size())] ^= static_cast<char>(1U << random.below(8));
    ByteReader in(bytes);
    const auto back = Ledger::decode(&in);
    if (!back.is_ok()) {
      EXPECT_EQ(back.status().code(), Code::kCorrupt);
      ++refused;
      continue;
    }
    ++taken;
    ASSERT_EQ(encoded(back.value()), bytes.substr(0, in.offset()));
  }
  EXPECT_GT(refused, 1000U);
  EXPECT_GT(taken, 1000U);
}

TEST(Ledger, MarkingTwiceIsABug) {
  Ledger ledger;
  ledger.mark({{0, 0, 0, 1}, 0, 2}, Verdict::kApplied);
  EXPECT_DEATH(ledger.mark({{0, 0, 0, 1}, 0, 2}, Verdict::kSkipped), "already has a verdict");
  EXPECT_DEATH(ledger.mark({{0, 0, 0, 1}, 2, 2}, Verdict::kApplied), "of 2 batches");
  ledger.close_below(2);
  EXPECT_DEATH(ledger.close_below(1), "goes back");
}

}  // namespace
}  // namespace flux
