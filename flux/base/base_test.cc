// The small things that everything else stands on.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/buffer.h"
#include "flux/base/bytes.h"
#include "flux/base/hash.h"
#include "flux/base/key.h"
#include "flux/base/loop_executor.h"
#include "flux/base/random.h"
#include "flux/base/status.h"

namespace flux {
namespace {

// xoshiro256** once more, from its definition on a state of four words.
class ReferenceRandom {
 public:
  explicit ReferenceRandom(uint64_t seed) {
    for (uint64_t i = 0; i < 4; ++i) s_[i] = mix64(seed + 0x9e3779b97f4a7c15ULL * (i + 1));
    s_[0] |= 1;
  }
  uint64_t next() {
    const uint64_t times5 = s_[1] * 5;
    const uint64_t out = ((times5 << 7) | (times5 >> 57)) * 9;
    const uint64_t a = s_[0], b = s_[1], c = s_[2], d = s_[3];
    s_[0] = a ^ d ^ b;
    s_[1] = b ^ c ^ a;
    s_[2] = c ^ a ^ (b << 17);
    s_[3] = ((d ^ b) << 45) | ((d ^ b) >> 19);
    return out;
  }

 private:
  uint64_t s_[4];
};

TEST(Random, SequenceNeverChanges) {
  for (const uint64_t seed : {0ULL, 1ULL, 42ULL, ~0ULL}) {
    Random random(seed);
    ReferenceRandom reference(seed);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(random.next(), reference.next()) << seed;
  }
  Random random(1);  // golden values: checkpoints, data and simulations depend on them
  const uint64_t expected[] = {0x7e6c4bde79b55ba4ULL, 0x313b89733305f573ULL, 0xbb64af84693cf224ULL};
  for (const uint64_t value : expected) EXPECT_EQ(random.next(), value);
}

TEST(Random, DrawsStayInTheirRanges) {
  Random random(7);
  double sum = 0, squares = 0, waits = 0;
  uint64_t seen[6] = {};
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) {
    ++seen[random.below(6)];
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    const double x = random.normal();
    sum += x;
    squares += x * x;
    waits += random.exponential();
  }
  for (const uint64_t n : seen) EXPECT_NEAR(static_cast<double>(n), kDraws / 6.0, 500);
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
  EXPECT_NEAR(waits / kDraws, 1, 0.03);
  EXPECT_EQ(random.below(1), 0U);
}

// Shards of keys and checksums are in every checkpoint: these numbers are for ever.
TEST(Hash, ValuesNeverChange) {
  EXPECT_EQ(mix64(0), 0U);
  EXPECT_EQ(mix64(1), 0x4179b061e0c0e0d0ULL);
  EXPECT_EQ(hash_pair(1, 2), 0x71f5f51a35fc82c5ULL);
  EXPECT_EQ(hash_bytes("flux"), 0x894c23db9fe7305dULL);
  EXPECT_EQ(hash_bytes("flux", 1), 0x33c155909ff3ba9aULL);
  EXPECT_EQ(shard_of(12345, 256), 209U);
  EXPECT_EQ(hash_uniform(1, 2, 3), 0x1.80d414p-2F);
}

TEST(Hash, PiecesEqualTheWhole) {
  std::string text(100000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(mix64(i));
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    StreamHasher pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t n = std::min<size_t>(text.size() - at, random.below(5000));
      pieces.update(text.data() + at, n);
      at += n;
    }
    EXPECT_EQ(pieces.digest(), hash_bytes(text));
  }
}

TEST(Hash, KeysSpreadOverShards) {
  for (const uint32_t shards : {1U, 3U, 256U, 65536U}) {
    std::vector<uint32_t> seen(shards, 0);
    const uint64_t keys = shards * 50ULL;
    for (uint64_t key = 0; key < keys; ++key) ++seen[shard_of(key, shards)];
    for (const uint32_t n : seen) ASSERT_NEAR(n, 50, shards == 1 ? 0 : 50);
  }
}

TEST(Buffer, AlignedAndNeverShrinks) {
  for (const size_t n : {1U, 17U, 1000U, (2U << 20) / 4, (5U << 20) / 4 + 3}) {
    Buffer<float> buffer(n);
    ASSERT_EQ(buffer.size(), n);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0U);
    buffer.fill(2.5F);
    EXPECT_EQ(buffer[0], 2.5F);
    EXPECT_EQ(buffer[n - 1], 2.5F);
    const float* before = buffer.data();
    buffer.resize_discard(n / 2);
    EXPECT_EQ(buffer.data(), before);
    EXPECT_EQ(buffer.span().size(), n / 2);
    buffer.resize_discard(n * 3);
    buffer.fill(1.0F);
    EXPECT_EQ(buffer[n * 3 - 1], 1.0F);
  }
}

TEST(Buffer, Moves) {
  Buffer<uint32_t> a(10);
  a.fill(3);
  Buffer<uint32_t> b(std::move(a));
  ASSERT_EQ(b.size(), 10U);
  Buffer<uint32_t> c;
  EXPECT_EQ(c.data(), nullptr);
  EXPECT_EQ(c.size(), 0U);
  c = std::move(b);
  ASSERT_EQ(c.size(), 10U);
  EXPECT_EQ(c[9], 3U);
}

TEST(LoopExecutor, RunsInOrderOfTimeThenOfPosting) {
  LoopExecutor executor;
  std::string ran;
  EXPECT_TRUE(executor.idle());
  executor.post(3600 * kSecond, [&] { ran += 'z'; });
  executor.post(0, [&] {
    ran += 'a';
    executor.post(0, [&] { ran += 'd'; });
  });
  executor.post(0, [&] { ran += 'b'; });
  executor.post(0, [&] { ran += 'c'; });
  EXPECT_EQ(ran, "") << "never inside post()";
  EXPECT_EQ(executor.run_ready(), 4U);
  EXPECT_EQ(ran, "abcd");
  EXPECT_FALSE(executor.idle());
  EXPECT_GT(executor.next_time_ns(), executor.now_ns() + 3000 * kSecond);
  EXPECT_EQ(executor.run_ready(), 0U);
}

TEST(LoopExecutor, EarlierTimesFirst) {
  LoopExecutor executor;
  std::string ran;
  executor.post(-1, [&] { ran += 'b'; });
  executor.post(-kSecond, [&] { ran += 'a'; });
  executor.post(0, [&] { ran += 'c'; });
  executor.run_ready();
  EXPECT_EQ(ran, "abc");
}

TEST(Status, CarriesCodeMessageAndContext) {
  EXPECT_TRUE(Status::ok().is_ok());
  EXPECT_TRUE(Status::ok().with_context("x").is_ok());
  const Status bad = error(Code::kIo, "disk {}", 7);
  EXPECT_FALSE(bad.is_ok());
  EXPECT_EQ(bad.message(), "disk 7");
  EXPECT_EQ(bad.with_context("a.tsv").message(), "a.tsv: disk 7");
  EXPECT_EQ(bad.with_context("a.tsv").code(), Code::kIo);
  EXPECT_EQ(invalid("no").code(), Code::kInvalid);
  EXPECT_EQ(errno_status("open x", ENOENT).code(), Code::kNotFound);
  EXPECT_EQ(errno_status("open x", EACCES).code(), Code::kInvalid);
  EXPECT_EQ(errno_status("open x", EIO).code(), Code::kIo);
  EXPECT_EQ(errno_status("open x", EACCES).message(), "open x: Permission denied");
  std::vector<std::string> names;
  for (int c = 0; c <= static_cast<int>(Code::kCancelled); ++c)
    names.emplace_back(code_name(static_cast<Code>(c)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

Result<int> half(int n) {
  if (n % 2 != 0) return invalid("{} is odd", n);
  return n / 2;
}
Result<int> quarter(int n) {
  FLUX_ASSIGN_OR_RETURN(const int h, half(n));
  FLUX_RETURN_IF_ERROR(half(h).status());
  return h / 2;
}

TEST(Status, ResultsPassFailuresOn) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(7).status().message(), "7 is odd");
  EXPECT_EQ(quarter(10).status().message(), "5 is odd");
  EXPECT_DEATH((void)quarter(7).value(), "7 is odd");
  EXPECT_DEATH(Result<int>(Status::ok()), "needs a failure");
}

TEST(Bytes, ReadsBackAndNeverPastTheEnd) {
  ByteWriter out;
  out.put<uint8_t>(1);
  out.put<uint32_t>(0x04030201);
  out.text("four");
  out.put(-2.5);
  EXPECT_EQ(out.str().substr(1, 4), "\x01\x02\x03\x04");
  ByteReader in(out.str());
  EXPECT_EQ(in.get<uint8_t>(), 1);
  EXPECT_EQ(in.get<uint32_t>(), 0x04030201U);
  EXPECT_EQ(in.text(4), "four");
  EXPECT_EQ(in.get<double>(), -2.5);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.left(), 0U);
  EXPECT_EQ(in.get<uint16_t>(), 0);
  EXPECT_FALSE(in.ok());
  ByteReader longer(std::string_view(out.str()).substr(5));
  EXPECT_EQ(longer.text(3), "") << "longer than allowed";
  EXPECT_FALSE(longer.ok());
  EXPECT_EQ(longer.get<uint32_t>(), 0U) << "nothing is read after a failure";
}

}  // namespace
}  // namespace flux
