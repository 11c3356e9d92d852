#include "flux/data/parquet/large_numbers.h"

#include <algorithm>
#include <cmath>

namespace flux {

LargeNumbers::LargeNumbers(std::span<const parquet_plugin::Values> columns, uint32_t from,
                           uint32_t rows) {
  for (uint32_t c = 0; c < columns.size(); ++c) {
    const parquet_plugin::Values& column = columns[c];
    for (const auto& [place, number] : std::span(column.large, column.large_count)) {
      if (std::isinf(number)) continue;
      const uint32_t* const begin = column.begin == nullptr ? nullptr : column.begin + from;
      const uint64_t first = begin == nullptr ? from : begin[0];
      const uint64_t last = begin == nullptr ? uint64_t{from} + rows : begin[rows];
      if (place < first || place >= last) continue;
      auto row = static_cast<uint32_t>(place - first);
      uint32_t index = 0;
      if (begin != nullptr) {
        row = static_cast<uint32_t>(std::upper_bound(begin, begin + rows + 1, place) - begin) - 1;
        index = static_cast<uint32_t>(place) - begin[row];
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
