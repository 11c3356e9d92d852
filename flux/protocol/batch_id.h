// BatchId: the identity of a batch, which is its place in the data and nothing else.
//
// It does not name a worker, an attempt or an incarnation, so that a batch trained twice (a retry,
// a re-issued block, a zombie) is recognised as the same batch by every shard. Values; pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace flux {

constexpr uint32_t kBatchesPerBlockMax = 32;  // a block's batches fit one 32-bit mask

struct BlockId {
  uint32_t pass = 0;
  uint16_t phase = 0;
  uint16_t epoch = 0;
  uint32_t block = 0;
  auto operator<=>(const BlockId&) const = default;
};

// The phase of blocks of test data, which change nothing; their epoch says whose network predicts.
constexpr uint16_t kTestPhase = 0xFFFF;
// The phase whose network computes a batch of this block.
constexpr uint16_t network_of(const BlockId& id) {
  return id.phase == kTestPhase ? id.epoch : id.phase;
}

struct BatchId {
  BlockId block;
  uint8_t batch = 0;             // position in the block
  uint8_t batches_in_block = 0;  // 1..kBatchesPerBlockMax, from the frozen geometry
  auto operator<=>(const BatchId&) const = default;
};

// What became of a batch on a shard. Everything but kApplied is decided by the coordinator and
// logged there before any mark is written.
enum class Verdict : uint8_t { kApplied = 0, kSkipped = 1, kDropped = 2, kLost = 3 };
constexpr uint32_t kVerdicts = 4;
const char* verdict_name(Verdict verdict);

// Bits of batches 0..n-1.
constexpr uint32_t batch_mask(uint32_t n) {
  return n >= 32 ? ~0U : (1U << n) - 1U;
}

std::string to_string(const BlockId& id);  // "pass 0 phase 0 epoch 1 block 12"
std::string to_string(const BatchId& id);

}  // namespace flux
