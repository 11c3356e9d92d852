// The format multislot, Paddle's: for each slot in the order of data.columns the number of its
// values, then the values; all between blanks.
//
//   1 1 2 17 9 1 4 3 0.5 0 2.25      (label; a slot with two keys; one with one; three numbers)
//
// Keys are whole numbers below 2^64 (or words, in a slot with text). A key of 0 is Paddle's padding
// of a slot without keys and is left out; so is a slot with 0 values. Format:
// docs/using/formats.md.
#pragma once

#include <memory>
#include <vector>

#include "flux/data/text/columns.h"
#include "flux/data/text/line_parser.h"
#include "flux/data/text/line_shape.h"

namespace flux {

// Word by word, with a reason for every line that it refuses: what the fast parser must agree with.
class PlainMultiSlot final : public LineParser {
 public:
  // Both outlive it.
  PlainMultiSlot(const LineShape& shape, const std::vector<LineColumn>& columns)
      : shape_(shape), columns_(columns) {}
  std::optional<LineError> parse(std::string_view line, LineRecord* out) const override;

 private:
  class Words;
  std::optional<LineError> read_column(size_t place, Words* words, LineRecord* out) const;
  std::optional<LineError> read_value(const LineColumn& column, size_t i, std::string_view word,
                                      size_t at, LineRecord* out) const;
  // Values that the column has; ~0: any number.
  uint64_t width(const LineColumn& column) const;
  std::string shown_slot(size_t place) const;

  const LineShape& shape_;
  const std::vector<LineColumn>& columns_;
};

// Reads 16 bytes at a time. False: leave it to the plain parser.
class FastMultiSlot {
 public:
  FastMultiSlot(const LineShape& shape, const std::vector<LineColumn>& columns)
      : shape_(shape), columns_(columns) {}
  bool parse(std::string_view line, LineRecord* out) const;

 private:
  bool read_keys(uint32_t slot, uint64_t count, const char** at, LineRecord* out) const;
  bool read_dense(uint32_t first, uint64_t count, const char** at, LineRecord* out) const;
  bool read_word(const LineColumn& column, const char** at, const char* end, LineRecord* out) const;

  const LineShape& shape_;
  const std::vector<LineColumn>& columns_;
};

class MultiSlotParser final : public LineParser {
 public:
  // `columns` are those of `options`.
  MultiSlotParser(const DataOptions& options, std::vector<LineColumn> columns)
      : shape_(options),
        columns_(std::move(columns)),
        fast_(shape_, columns_),
        plain_(shape_, columns_) {}
  std::optional<LineError> parse(std::string_view line, LineRecord* out) const override {
    if (fast_.parse(line, out)) [[likely]]
      return std::nullopt;
    return plain_.parse(line, out);
  }
  // Of the column `id`, or the whole of the column `logkey` where there is no other.
  std::string name_of(std::string_view line) const override;

 private:
  const LineShape shape_;
  const std::vector<LineColumn> columns_;
  const FastMultiSlot fast_;
  const PlainMultiSlot plain_;
};

// The columns of a job in this format.
Result<std::vector<LineColumn>> multislot_columns(const DataOptions& options);
// Written for an example without a name, as a column holds a word.
inline constexpr std::string_view kNoName = "-";
// The search of a logkey: characters 17 to 32. Shorter ones have none.
std::string_view search_of_logkey(std::string_view logkey);

}  // namespace flux
