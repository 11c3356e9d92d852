// LineParser: one text format, line by line. A format with any number of keys in its lines is one
// of these, a test and a row in the table of format.cc; batches are made of it by line_block.cc.
//
// Threads: immutable, shared by all; each thread has its own record. Failure: LineError.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "flux/data/block_readers.h"
#include "flux/data/line_error.h"
#include "flux/data/text/line_record.h"

namespace flux {

class LineParser {
 public:
  // Bytes behind a line that may be read; the first of them is no letter, digit or mark ('\n', '\r'
  // or 0), the others do not matter.
  static constexpr size_t kSlack = 64;

  virtual ~LineParser() = default;
  // `line` has no newline; one '\r' at its end is ignored.
  virtual std::optional<LineError> parse(std::string_view line, LineRecord* out) const = 0;
  // What a line that parse() takes calls its example; "": nothing, as in formats without names.
  virtual std::string name_of(std::string_view /*line*/) const { return ""; }
};

// The blocks of a format whose lines `parser` reads.
std::unique_ptr<const BlockFormat> line_format(const DataOptions& options,
                                               std::unique_ptr<const LineParser> parser);

}  // namespace flux
