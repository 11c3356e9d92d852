#include "flux/data/parquet/large_numbers.h"

#include <algorithm>
#include <cmath>

namespace flux {

LargeNumbers::LargeNumbers(std::span<const parquet_plugin::Values> columns, uint32_t rows) {
  for (uint32_t c = 0; c < columns.size(); ++c) {
    const parquet_plugin::Values& column = columns[c];
    for (const auto& [place, number] : std::span(column.large, column.large_count)) {
      if (std::isinf(number)) continue;
      auto row = static_cast<uint32_t>(place);
      uint32_t index = 0;
      if (column.begin != nullptr) {
        const uint32_t* behind = std::upper_bound(column.begin, column.begin + rows + 1, place);
        row = static_cast<uint32_t>(behind - column.begin) - 1;
        index = static_cast<uint32_t>(place) - column.begin[row];
      }
      all_.push_back({{c, row, index}, number});
    }
  }
}

std::optional<double> LargeNumbers::find(uint32_t column, uint32_t row, uint32_t index) const {
  const Place place(column, row, index);
  const auto at =
      std::lower_bound(all_.begin(), all_.end(), place,
                       [](const auto& one, const Place& wanted) { return one.first < wanted; });
  if (at == all_.end() || at->first != place) return std::nullopt;
  return at->second;
}

}  // namespace flux
