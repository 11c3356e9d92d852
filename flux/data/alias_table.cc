#include "flux/data/alias_table.h"

#include <cmath>
#include <numeric>

#include "flux/base/check.h"

namespace flux {

// Columns of equal height are filled by pairs: what a light index leaves free is given to a heavy
// one, which so becomes lighter.
AliasTable::AliasTable(std::span<const double> weights) : columns_(weights.size()) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  FLUX_CHECK(!weights.empty() && sum > 0 && std::isfinite(sum), "{} weights with the sum {}",
             weights.size(), sum);
  std::vector<double> height;
  std::vector<uint32_t> light, heavy;
  for (size_t i = 0; i < weights.size(); ++i) {
    height.push_back(weights[i] / sum * static_cast<double>(weights.size()));
    (height[i] < 1 ? light : heavy).push_back(static_cast<uint32_t>(i));
  }
  while (!light.empty() && !heavy.empty()) {
    const uint32_t small = light.back(), large = heavy.back();
    light.pop_back();
    columns_[small] = {static_cast<uint32_t>(height[small] * 0x1p32), large};
    height[large] -= 1 - height[small];
    if (height[large] >= 1) continue;
    heavy.pop_back();
    light.push_back(large);
  }
  // What is left is full but for rounding.
  for (const auto* rest : {&light, &heavy})
    for (const uint32_t i : *rest) columns_[i] = {~0U, i};
}

}  // namespace flux
