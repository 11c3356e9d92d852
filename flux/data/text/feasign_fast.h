// The fast parser of feasign lines. A name is looked for where the line before had it: 16 bytes are
// compared at once; numbers are read 16 bytes at a time (number_scan.h).
//
// It knows the ordinary lines; what it does not know it leaves to PlainFeasign, which also says
// what is wrong. What it takes it reads as PlainFeasign does. Threads: immutable.
#pragma once

#include <string_view>
#include <vector>

#include <immintrin.h>

#include "flux/data/text/line_shape.h"

namespace flux {

class FastFeasign {
 public:
  // `shape` outlives it.
  explicit FastFeasign(const LineShape& shape);
  // False: nothing is known of the line, and *out means nothing. Reads up to LineParser::kSlack
  // bytes behind the line, whose first is no part of a word.
  bool parse(std::string_view line, LineRecord* out) const;

 private:
  // A slot or dense feature, as a line names it.
  struct Name {
    alignas(16) char head[16] = {};  // of "NAME:"
    uint32_t mask = 0;               // bytes of head that count
    uint32_t length = 0;             // of "NAME:"
    std::string tail;                // what is longer than the head
    bool text = false, values = false;
  };
  bool matches(const Name& name, __m128i text, const char* at) const;
  bool read_labels(const char** at, LineRecord* out) const;
  // The feature whose name stands at `at`: the one before, or what came behind it the last time.
  uint32_t find(const char* at, const char* end, uint32_t before, LineRecord* out) const;
  bool read_note(const char** at, const char* end, LineRecord* out) const;
  bool read_key(uint32_t slot, const char** at, const char* end, LineRecord* out) const;
  bool read_text_key(uint32_t slot, const char** at, const char* end, LineRecord* out) const;
  bool read_dense(uint32_t index, const char** at, LineRecord* out) const;

  const LineShape& shape_;
  std::vector<Name> names_;  // slots, then dense features
  uint32_t slots_;
};

}  // namespace flux
