// ExactSum: a sum of doubles that does not depend on the order of adding or merging.
//
// A fixed-point integer wide enough for every double (2,240 bits in digits of 32), so nothing is
// rounded before value(), which gives the double nearest to the true sum. Adding costs a few
// nanoseconds. Only finite values may be added; whoever takes numbers from outside looks first.
// A plain value of 0.5 KB; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "flux/base/bytes.h"

namespace flux {

class ExactSum {
 public:
  void add(double value);
  void merge(const ExactSum& other);
  double value() const;
  // The same bytes for the same sum, however it came about.
  void put(ByteWriter* out) const;
  bool get(ByteReader* in);  // false: not such bytes

 private:
  static constexpr size_t kDigits = 70;
  using Digits = std::array<int64_t, kDigits>;
  static void carry(Digits* digits);  // every digit but the last into [0, 2^32)
  bool split(Digits* digits) const;   // into its size, carried; true: it is negative

  Digits digits_{};     // of 2^32; the first stands for 2^-1152
  uint32_t added_ = 0;  // since the last carry
};

}  // namespace flux
