#include "flux/table/row_layout.h"

namespace flux {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPaddingMax = 4;  // bytes per row; the budget beyond payload is 24 in all

RowLayout strided(size_t bytes, size_t stride) {
  const auto s = static_cast<uint32_t>(stride);
  return {bytes, s, s, 1, 0};
}

}  // namespace

double RowLayout::lines(size_t prefix) const {
  // Offsets repeat after 64 rows: strides are multiples of 4.
  size_t sum = 0;
  const size_t rows = 64;
  uint32_t number = 0;
  for (size_t i = 0; i < rows; ++i, number = next(number)) {
    const size_t start = offset(number) % kLine;
    sum += (start + prefix + kLine - 1) / kLine;
  }
  return static_cast<double>(sum) / static_cast<double>(rows);
}

RowLayout make_row_layout(size_t floats) {
  const size_t bytes = RowLayout::kHeaderBytes + 4 * floats;
  if (bytes <= kLine / 2) {
    const size_t rows = kLine / bytes;  // 2, 3 or 4
    if (kLine - rows * bytes <= kPaddingMax * rows) {
      return {bytes, static_cast<uint32_t>(bytes), kLine, static_cast<uint32_t>(rows),
              rows == 2 ? 1U : 2U};
    }
  }
  RowLayout best = strided(bytes, bytes);
  for (size_t stride = bytes + 4; stride <= bytes + kPaddingMax; stride += 4) {
    const RowLayout layout = strided(bytes, stride);
    if (layout.lines(bytes) < best.lines(bytes)) best = layout;
  }
  return best;
}

}  // namespace flux
