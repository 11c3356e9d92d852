// Derived features: what a job computes from the raw features of its lines, before a model sees
// them. One file per kind, data/features/<name>.cc, and a line in registry.cc.
//
// A feature reads whole columns of a batch (the keys of a slot, the numbers of a dense feature) and
// makes one: there is no call per value. What comes out depends on the job file and the line alone.
// Threads: kernels are immutable and shared. Failure: settings that cannot be are named by
// problem(), with the field of the job file; running cannot fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flux/data/dataset.h"

namespace flux {

// The keys of one slot over the examples of a batch.
struct KeyColumn {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin;  // [examples + 1]: where those of an example begin; empty: one each
  std::vector<float> values;    // [keys], or empty: all 1

  // Where the keys of an example begin and end.
  size_t first(size_t example) const { return begin.empty() ? example : begin[example]; }
  size_t last(size_t example) const { return begin.empty() ? example + 1 : begin[example + 1]; }
};
using NumberColumn = std::vector<float>;

// Columns of either kind, as the definition of the feature says.
struct FeatureInput {
  size_t examples = 0;
  std::vector<const KeyColumn*> keys;
  std::vector<const NumberColumn*> numbers;
};

class FeatureKernel {
 public:
  virtual ~FeatureKernel() = default;
  virtual void make_keys(const FeatureInput& /*in*/, KeyColumn* /*out*/) const {}
  virtual void make_numbers(const FeatureInput& /*in*/, NumberColumn* /*out*/) const {}
};

// What is wrong with a feature, and with which of its fields.
struct FeatureProblem {
  std::string field;
  std::string what;
};

struct FeatureDef {
  std::string name;
  std::string doc;
  bool reads_numbers = false;  // else keys
  bool makes_numbers = false;
  size_t sources_min = 1, sources_max = 1;
  std::vector<std::string> settings;  // fields of FeatureOptions that it uses besides name, op, of
  std::optional<FeatureProblem> (*problem)(const FeatureOptions& options) = nullptr;
  std::unique_ptr<const FeatureKernel> (*make)(const FeatureOptions& options) = nullptr;
};

// Sorted by name.
const std::vector<FeatureDef>& feature_defs();
const FeatureDef* find_feature(const std::string& op);  // null: no such
std::vector<std::string> feature_names();

// Where the keys of a slot or feature live: the hash of the word that they belong to.
uint64_t key_space(const std::string& name, const std::string& keys);

FeatureDef feature_bucketize();
FeatureDef feature_clip();
FeatureDef feature_cross();
FeatureDef feature_hash();
FeatureDef feature_log1p();
FeatureDef feature_normalise();

}  // namespace flux
