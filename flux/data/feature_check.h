// What is wrong with the features that a job computes: names that are taken or not known, features
// that need each other, settings. Pure; an empty list: nothing is.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "flux/data/features/feature.h"

namespace flux {

struct FeatureMistake {
  size_t feature = 0;  // of DataOptions::features
  std::string field;   // of it
  std::string what;
};
std::vector<FeatureMistake> feature_mistakes(const DataOptions& options);

// What the lines themselves hold.
std::vector<std::string> raw_slots(const DataOptions& options);
std::vector<std::string> raw_numbers(const DataOptions& options);

// What must agree before keys and numbers mean the same, for people: "features.price_bucket" ->
// "bucketize of price, boundaries [1, 2]".
std::map<std::string, std::string> describe_features(const DataOptions& options);

// The features in an order in which each comes behind those that it is computed from. They have no
// mistakes.
std::vector<size_t> feature_order(const DataOptions& options);

}  // namespace flux
