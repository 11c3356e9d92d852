// RowLayout: where the rows of a slab lie, chosen so that a random row touches few cache lines.
//
// A row is [key 8][count 4][weights][state], `bytes` long. Rows up to 32 bytes are packed whole
// into 64-byte lines if that wastes little; longer ones get the stride (of at most 4 bytes more)
// that crosses the fewest lines. A row's number is not its ordinal: when a line holds 3 rows,
// numbers 4 i + 3 are skipped, so that number -> address needs a shift and no division.
// Values; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flux {

struct RowLayout {
  static constexpr size_t kHeaderBytes = 12;  // key and count

  size_t bytes;          // of the row itself
  uint32_t row_stride;   // from a row to the next in its group
  uint32_t group_bytes;  // from a group to the next
  uint32_t group_rows;   // rows in a group
  uint32_t group_shift;  // a group owns 2^group_shift row numbers

  size_t offset(size_t number) const {
    return (number >> group_shift) * group_bytes +
           (number & ((size_t{1} << group_shift) - 1)) * row_stride;
  }
  // The row number that follows `number`.
  uint32_t next(uint32_t number) const {
    const uint32_t mask = (1U << group_shift) - 1;
    return (number & mask) + 1 < group_rows ? number + 1 : (number | mask) + 1;
  }
  // Numbers needed for `rows` rows.
  size_t numbers(size_t rows) const {
    return ((rows + group_rows - 1) / group_rows) << group_shift;
  }
  // Of the row with this number, counted from 0 in the order of creation; and the way back.
  uint32_t ordinal(uint32_t number) const {
    return (number >> group_shift) * group_rows + (number & ((1U << group_shift) - 1));
  }
  uint32_t number(uint32_t ordinal) const {
    if (group_rows == 1) return ordinal;
    return (ordinal / group_rows << group_shift) | ordinal % group_rows;
  }
  // Mean number of cache lines touched by the first `prefix` bytes of a row.
  double lines(size_t prefix) const;
  double bytes_per_row() const {
    return static_cast<double>(group_bytes) / static_cast<double>(group_rows);
  }
};

// `floats` = weights and state of a row.
RowLayout make_row_layout(size_t floats);

}  // namespace flux
