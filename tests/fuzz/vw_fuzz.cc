// Lines of vw: whatever the bytes, a record or a refusal that points into the line; a record has no
// more keys than the line has words.
// links: data storage base
#include <algorithm>

#include "flux/data/text/vw.h"
#include "tests/fuzz/lines_input.h"

namespace {

flux::DataOptions options_of(uint8_t choice) {
  flux::DataOptions o;
  o.format = "vw";
  o.raw_keys = (choice & 1) != 0;
  o.weights = (choice & 2) != 0;
  o.slots = {{"a", "", false, (choice & 4) != 0}};
  if ((choice & 8) != 0) o.slots.push_back({"bb", "", true, (choice & 16) != 0});
  if ((choice & 32) != 0) o.dense = {"x", "yy"};
  if ((choice & 64) != 0) o.group = "a";
  o.minus_one_is_zero = (choice & 128) != 0;
  return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const flux::DataOptions options = options_of(data[0]);
  const std::string line = flux::line_of(data, size);
  flux::LineRecord record;
  if (flux::check_line(flux::VwParser(options), options, line, &record)) return 0;
  const auto blanks = std::count_if(line.begin(), line.end(),
                                    [](char c) { return c == ' ' || c == '\t' || c == '|'; });
  flux::expect(record.count <= blanks);
  return 0;
}
