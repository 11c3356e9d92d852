// Lines of vw: whatever the bytes, what a second parser makes of them, or a refusal that points
// into the line.
// links: data storage base
#include "flux/data/text/vw.h"
#include "tests/fuzz/lines_input.h"
#include "tests/fuzz/plain_vw.h"

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
  flux::check_same(flux::VwParser(options), options, line, flux::plain_vw(options, line));
  return 0;
}
