// The numbers of some rows of a Parquet file that are too large for a float, which holds infinity
// in their place: so that a message can show what the file has.
// Plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "flux/data/parquet/plugin_api.h"

namespace flux {

class LargeNumbers {
 public:
  LargeNumbers() = default;
  // Of `rows` rows of columns, of which row `from` is the first.
  LargeNumbers(std::span<const parquet_plugin::Values> columns, uint32_t from, uint32_t rows);

  // The number at `index` of a row's in a column; none: a float could hold it, or it is infinite in
  // the file as well.
  std::optional<double> find(uint32_t column, uint32_t row, uint32_t index) const;

 private:
  using Place = std::tuple<uint32_t, uint32_t, uint32_t>;  // column, row, index
  std::vector<std::pair<Place, double>> all_;              // in order
};

}  // namespace flux
