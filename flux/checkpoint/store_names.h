// Names of files and folders in a folder of checkpoints: what makes a folder a checkpoint, a base
// or a leftover. Private to checkpoint/. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace flux {

constexpr uint64_t kManifestMax = 256ULL << 20;
constexpr const char* kManifestName = "manifest.json";
constexpr const char* kBaseName = "base.json";    // in place of the manifest, once it is pruned
constexpr const char* kClaimsFolder = ".claims";  // numbers that were begun

inline bool is_checkpoint_name(std::string_view name) {
  return name.size() >= 6 && name.size() <= 12 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace flux
