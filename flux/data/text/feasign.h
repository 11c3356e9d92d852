// The format feasign: labels, then features by name in any order.
//
//   1 user:17 item:9 history:3 history:5 price:0.5
//   1,0 w=0.5 id=a7 sid=s31 user:17 ...
//
// Words are separated by blanks or tabs. The first has the labels, with commas between them; w= is
// the example's weight, id= its name, sid= a search or session; each comes at most once. A slot's
// word is NAME:KEY and may come any number of times; in a slot with values it may be
// NAME:KEY:NUMBER. A dense feature's word is NAME:NUMBER and comes at most once (0 if it does not).
// Format: docs/using/feasign.md.
#pragma once

#include <memory>

#include "flux/data/text/feasign_fast.h"
#include "flux/data/text/line_parser.h"
#include "flux/data/text/line_shape.h"

namespace flux {

// Word by word, with a reason for every line that it refuses: what the fast parser must agree with.
class PlainFeasign final : public LineParser {
 public:
  // `shape` outlives it.
  explicit PlainFeasign(const LineShape& shape) : shape_(shape) {}
  std::optional<LineError> parse(std::string_view line, LineRecord* out) const override;

 private:
  std::optional<LineError> read_labels(std::string_view word, size_t column, LineRecord* out) const;
  // w=, id=, sid=
  std::optional<LineError> read_note(std::string_view word, size_t column, LineRecord* out) const;
  std::optional<LineError> read_feature(std::string_view word, size_t column,
                                        LineRecord* out) const;

  const LineShape& shape_;
};

class FeasignParser final : public LineParser {
 public:
  explicit FeasignParser(const DataOptions& options)
      : shape_(options), fast_(shape_), plain_(shape_) {}
  std::optional<LineError> parse(std::string_view line, LineRecord* out) const override {
    if (fast_.parse(line, out)) [[likely]]
      return std::nullopt;
    return plain_.parse(line, out);
  }
  std::string name_of(std::string_view line) const override;

 private:
  const LineShape shape_;
  const FastFeasign fast_;
  const PlainFeasign plain_;
};

}  // namespace flux
