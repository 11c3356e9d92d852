// The scale of the learning rate that travels with leases and pushes (cluster/lr_policy.h): its
// range, and what a push of several batches carries. Plain values; not thread-safe.
#pragma once

#include <cstdint>

namespace flux {

// In the range that a policy can give; false for NaN.
constexpr float kLrScaleMax = 1e6F;
constexpr bool is_lr_scale(float x) {
  return x > 0 && x <= kLrScaleMax;
}

// The scale of batches that are merged: theirs if they agree, bit for bit, else the mean over all
// their examples. Fixed by the batches and their order.
class LrScaleMean {
 public:
  void add(float scale, uint64_t examples) {
    if (count_++ == 0) first_ = scale;
    equal_ = equal_ && scale == first_;
    sum_ += static_cast<double>(scale) * static_cast<double>(examples);
    examples_ += static_cast<double>(examples);
  }
  // 1 of nothing.
  float value() const {
    return equal_ || !(examples_ > 0) ? first_ : static_cast<float>(sum_ / examples_);
  }

 private:
  uint64_t count_ = 0;
  float first_ = 1;
  bool equal_ = true;
  double sum_ = 0;
  double examples_ = 0;
};

}  // namespace flux
