// The formats libsvm and libffm: a label, then features as numbers.
//
//   libsvm:  +1 qid:3 12:0.5 904:1 # a comment      (INDEX:VALUE; the slot is the job's only one)
//   libffm:  1 0:12:0.5 1:904:1                     (FIELD:INDEX:VALUE; field f is slot f, from 0)
//
// VALUE may be left out: 1. libsvm also has LABEL:WEIGHT for jobs with weights, and qid:, the
// search of the example, for data.group: sid. Everything behind a # is left out. Format:
// docs/using/formats.md. Threads and failure: as LineParser.
#pragma once

#include "flux/data/text/line_parser.h"
#include "flux/data/text/line_shape.h"

namespace flux {

class LibsvmParser final : public LineParser {
 public:
  explicit LibsvmParser(const DataOptions& options) : shape_(options) {}
  std::optional<LineError> parse(std::string_view line, LineRecord* out) const override;

 private:
  std::optional<LineError> read_head(std::string_view word, size_t column, LineRecord* out) const;
  std::optional<LineError> read_feature(std::string_view word, size_t column,
                                        LineRecord* out) const;
  const LineShape shape_;
};

class LibffmParser final : public LineParser {
 public:
  explicit LibffmParser(const DataOptions& options) : shape_(options) {}
  std::optional<LineError> parse(std::string_view line, LineRecord* out) const override;

 private:
  std::optional<LineError> read_feature(std::string_view word, size_t column,
                                        LineRecord* out) const;
  const LineShape shape_;
};

}  // namespace flux
