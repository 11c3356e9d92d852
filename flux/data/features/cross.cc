// cross: a key for each combination of the keys of two or more slots.
#include <algorithm>

#include "flux/base/hash.h"
#include "flux/data/features/feature.h"

namespace flux {
namespace {

class CrossKernel final : public FeatureKernel {
 public:
  explicit CrossKernel(const FeatureOptions& options)
      : space_(key_space(options.name, options.keys)), limit_(options.limit) {}

  void make_keys(const FeatureInput& in, KeyColumn* out) const override {
    out->keys.clear();
    out->begin.clear();
    out->values.clear();
    const bool one_each = std::all_of(in.keys.begin(), in.keys.end(),
                                      [](const KeyColumn* c) { return c->begin.empty(); });
    const bool values = std::any_of(in.keys.begin(), in.keys.end(),
                                    [](const KeyColumn* c) { return !c->values.empty(); });
    if (one_each && !values) return make_single(in, out);
    out->begin.push_back(0);
    for (size_t i = 0; i < in.examples; ++i) {
      combine(in, i, values, out);
      out->begin.push_back(static_cast<uint32_t>(out->keys.size()));
    }
  }

 private:
  // Slot by slot over the whole batch.
  void make_single(const FeatureInput& in, KeyColumn* out) const {
    out->keys.assign(in.examples, space_);
    for (const KeyColumn* column : in.keys)
      for (size_t i = 0; i < in.examples; ++i)
        out->keys[i] = hash_pair(out->keys[i], column->keys[i]);
  }

  // The combinations of one example: those of the slots so far, each with every key of the next.
  // The first slot moves slowest. Nothing that the limit will cut is computed.
  void combine(const FeatureInput& in, size_t example, bool values, KeyColumn* out) const {
    const size_t start = out->keys.size();
    out->keys.push_back(space_);
    if (values) out->values.push_back(1);
    std::vector<uint64_t> before;
    std::vector<float> before_values;
    for (const KeyColumn* column : in.keys) {
      before.assign(out->keys.begin() + static_cast<ptrdiff_t>(start), out->keys.end());
      out->keys.resize(start);
      if (values) {
        before_values.assign(out->values.begin() + static_cast<ptrdiff_t>(start),
                             out->values.end());
        out->values.resize(start);
      }
      const size_t first = column->first(example), last = column->last(example);
      for (size_t b = 0; b < before.size(); ++b) {
        for (size_t k = first; k < last && out->keys.size() - start < limit_; ++k) {
          out->keys.push_back(hash_pair(before[b], column->keys[k]));
          if (values)
            out->values.push_back(before_values[b] *
                                  (column->values.empty() ? 1.0F : column->values[k]));
        }
      }
    }
  }

  uint64_t space_;
  uint32_t limit_;
};

}  // namespace

FeatureDef feature_cross() {
  FeatureDef def;
  def.name = "cross";
  def.doc =
      "A key for each combination of the keys of two or more slots; of an example with more than "
      "`limit` combinations the first ones.";
  def.sources_min = 2;
  def.sources_max = 8;
  def.settings = {"keys", "limit"};
  def.problem = [](const FeatureOptions&) -> std::optional<FeatureProblem> { return std::nullopt; };
  def.make = [](const FeatureOptions& options) -> std::unique_ptr<const FeatureKernel> {
    return std::make_unique<CrossKernel>(options);
  };
  return def;
}

}  // namespace flux
