// The format vw, vowpal wabbit's: a label, then features in namespaces, which are the job's slots.
//
//   1 0.5 'tag |user 17 |history 3 5:2 |dense price:0.5
//
// Before the first bar: the label, the importance (weight) if there is one, and a tag, the
// example's name. A namespace may have a number, NAME:NUMBER, by which its values are multiplied. A
// feature is KEY or KEY:VALUE. The namespace `dense` has dense features, NAME:NUMBER. A bar with a
// blank behind it is the namespace of a job with one slot. Format: docs/using/formats.md. Threads
// and failure: as LineParser.
#pragma once

#include "flux/data/text/line_parser.h"
#include "flux/data/text/line_shape.h"

namespace flux {

class VwParser final : public LineParser {
 public:
  explicit VwParser(const DataOptions& options) : shape_(options) {}
  std::optional<LineError> parse(std::string_view line, LineRecord* out) const override;
  // The tag, without the ' before it.
  std::string name_of(std::string_view line) const override;

 private:
  struct Space {
    uint32_t slot = 0;
    bool dense = false;
    float scale = 1;
  };
  std::optional<LineError> read_head(std::string_view head, LineRecord* out) const;
  std::optional<LineError> read_space(std::string_view word, size_t column, Space* out) const;
  std::optional<LineError> read_feature(const Space& space, std::string_view word, size_t column,
                                        LineRecord* out) const;
  std::optional<LineError> read_number(std::string_view word, size_t column, LineRecord* out) const;

  const LineShape shape_;
};

}  // namespace flux
