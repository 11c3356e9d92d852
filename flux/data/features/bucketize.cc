// bucketize: a number becomes the key of the bucket that it falls into. Bucket i has the numbers
// from boundary i - 1 (inclusive) up to boundary i (exclusive); n boundaries make n + 1 buckets.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "flux/base/hash.h"
#include "flux/data/features/feature.h"

namespace flux {
namespace {

// In float, as the numbers are.
std::vector<float> boundaries_of(const FeatureOptions& options) {
  std::vector<float> out;
  for (const double b : options.boundaries) out.push_back(static_cast<float>(b));
  for (const double b : options.quantiles)
    if (out.empty() || static_cast<float>(b) != out.back()) out.push_back(static_cast<float>(b));
  double power = 1;
  for (uint32_t i = 1; options.log_base > 0 && i < options.buckets; ++i, power *= options.log_base)
    out.push_back(static_cast<float>(power));
  return out;
}

class BucketizeKernel final : public FeatureKernel {
 public:
  explicit BucketizeKernel(const FeatureOptions& options) : boundaries_(boundaries_of(options)) {
    const uint64_t space = key_space(options.name, options.keys);
    for (uint64_t i = 0; i <= boundaries_.size(); ++i) keys_.push_back(hash_pair(space, i));
  }

  void make_keys(const FeatureInput& in, KeyColumn* out) const override {
    const NumberColumn& numbers = *in.numbers[0];
    std::vector<uint32_t> bucket(numbers.size(), 0);
    if (boundaries_.size() <= kFewBoundaries) {
      for (const float boundary : boundaries_)
        for (size_t i = 0; i < numbers.size(); ++i) bucket[i] += numbers[i] >= boundary ? 1 : 0;
    } else {
      for (size_t i = 0; i < numbers.size(); ++i)
        bucket[i] = static_cast<uint32_t>(
            std::upper_bound(boundaries_.begin(), boundaries_.end(), numbers[i]) -
            boundaries_.begin());
    }
    out->keys.resize(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) out->keys[i] = keys_[bucket[i]];
  }

 private:
  static constexpr size_t kFewBoundaries = 32;  // comparing with all is faster up to here
  std::vector<float> boundaries_;
  std::vector<uint64_t> keys_;  // by bucket
};

// The place of the first number that does not rise (`strictly`: or repeats), as a float; 0: none.
size_t falls_at(const std::vector<double>& numbers, bool strictly) {
  for (size_t i = 1; i < numbers.size(); ++i) {
    const auto before = static_cast<float>(numbers[i - 1]), now = static_cast<float>(numbers[i]);
    if (strictly ? !(now > before) : !(now >= before)) return i;
  }
  return 0;
}

std::optional<FeatureProblem> problem(const FeatureOptions& options) {
  const int kinds = (options.boundaries.empty() ? 0 : 1) + (options.quantiles.empty() ? 0 : 1) +
                    (options.log_base == 0 ? 0 : 1);
  if (kinds != 1)
    return FeatureProblem{"op", fmt::format("bucketize needs {}of boundaries, quantiles and "
                                            "log_base{}",
                                            kinds == 0 ? "one " : "only one ",
                                            kinds == 0 ? ": where its buckets end" : "")};
  if (const size_t at = falls_at(options.boundaries, true))
    return FeatureProblem{
        "boundaries", fmt::format("boundaries must rise: {} comes after {}", options.boundaries[at],
                                  options.boundaries[at - 1])};
  if (const size_t at = falls_at(options.quantiles, false))
    return FeatureProblem{"quantiles",
                          fmt::format("quantiles must not fall: {} comes after {}",
                                      options.quantiles[at], options.quantiles[at - 1])};
  if (options.log_base != 0 &&
      std::log10(options.log_base) * static_cast<double>(options.buckets - 2) > 38)
    return FeatureProblem{"buckets", fmt::format("{} buckets by powers of {} go beyond what a "
                                                 "float can hold (3.4e38)",
                                                 options.buckets, options.log_base)};
  return std::nullopt;
}

}  // namespace

FeatureDef feature_bucketize() {
  FeatureDef def;
  def.name = "bucketize";
  def.doc =
      "A number as the key of its bucket, by `boundaries`, by `quantiles`, or by the powers of "
      "`log_base`.";
  def.reads_numbers = true;
  def.settings = {"keys", "boundaries", "quantiles", "log_base", "buckets"};
  def.problem = problem;
  def.make = [](const FeatureOptions& options) -> std::unique_ptr<const FeatureKernel> {
    return std::make_unique<BucketizeKernel>(options);
  };
  return def;
}

}  // namespace flux
