// hash: the keys of a slot anew, into a space of their own, perhaps a small one.
#include "flux/base/hash.h"

#include "flux/data/features/feature.h"

namespace flux {
namespace {

class HashKernel final : public FeatureKernel {
 public:
  explicit HashKernel(const FeatureOptions& options)
      : space_(key_space(options.name, options.keys)), modulus_(options.modulus) {}

  void make_keys(const FeatureInput& in, KeyColumn* out) const override {
    const KeyColumn& from = *in.keys[0];
    out->begin = from.begin;
    out->values = from.values;
    out->keys.resize(from.keys.size());
    for (size_t i = 0; i < from.keys.size(); ++i) {
      const uint64_t key = modulus_ == 0 ? from.keys[i] : mix64(from.keys[i]) % modulus_;
      out->keys[i] = hash_pair(space_, key);
    }
  }

 private:
  uint64_t space_, modulus_;
};

}  // namespace

FeatureDef feature_hash() {
  FeatureDef def;
  def.name = "hash";
  def.doc = "The keys of a slot by a hash of them, modulo `modulus` if that is given.";
  def.settings = {"keys", "modulus"};
  def.problem = [](const FeatureOptions&) -> std::optional<FeatureProblem> { return std::nullopt; };
  def.make = [](const FeatureOptions& options) -> std::unique_ptr<const FeatureKernel> {
    return std::make_unique<HashKernel>(options);
  };
  return def;
}

}  // namespace flux
