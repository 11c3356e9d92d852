// IndexDecoder: the indices into a dictionary that a page holds: runs of one index, and runs of
// packed bits.
//
// Eight packed indices are taken apart at once; whoever looks them up has to hold them against the
// size of the dictionary.
// Threads: one. Ownership: the bytes outlive the reading. Failure: parquet::ParquetException where
// the bytes end early; nothing behind them is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace flux::parquet_plugin {

class IndexDecoder {
 public:
  // The bytes behind the levels of a page: the width in bits, then runs.
  void reset(const uint8_t* data, size_t size);
  // The next indices, at least 1 and at most `most`, which is not 0; valid until the next call.
  std::span<const uint32_t> next(size_t most);

 private:
  static constexpr size_t kAtOnce = 1024;  // a multiple of 8

  void begin_run();
  void refill();
  void unpack(size_t groups);
  void unpack_one_by_one(uint32_t* out) const;
  void unpack_at_once(size_t groups, uint32_t* out) const;

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  uint32_t width_ = 0;    // bits
  uint64_t repeats_ = 0;  // of `repeated_` that were not taken
  uint64_t groups_ = 0;   // of eight packed indices, the same
  uint32_t repeated_ = 0;
  alignas(32) std::array<uint8_t, 32> bytes_{};   // where each of eight begins, in two halves
  alignas(32) std::array<uint32_t, 8> shifts_{};  // and at which bit of that
  std::array<uint32_t, kAtOnce> indices_;
  size_t taken_ = 0, filled_ = 0;  // of indices_
};

}  // namespace flux::parquet_plugin
