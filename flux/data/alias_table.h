// AliasTable: draws an index in proportion to its weight, in constant time: one random number, one
// look at a table. Immutable after it is made; each thread has its own Random. No failure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/base/random.h"

namespace flux {

class AliasTable {
 public:
  // At least one weight, fewer than 2^32, none negative, not all zero.
  explicit AliasTable(std::span<const double> weights);
  size_t size() const { return columns_.size(); }

  uint32_t draw(Random* random) const {
    const uint64_t bits = random->next();
    const uint64_t at = ((bits >> 32) * columns_.size()) >> 32;
    const Column& column = columns_[at];
    return static_cast<uint32_t>(bits) < column.own ? static_cast<uint32_t>(at) : column.other;
  }

 private:
  struct Column {
    uint32_t own;    // share of the column that is its own index, of 2^32
    uint32_t other;  // what the rest of the column is
  };
  std::vector<Column> columns_;
};

}  // namespace flux
