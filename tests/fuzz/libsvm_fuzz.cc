// Lines of libsvm and libffm: whatever the bytes, what a second parser makes of them, or a refusal
// that points into the line.
// links: data storage base
#include "flux/data/text/libsvm.h"
#include "tests/fuzz/lines_input.h"
#include "tests/fuzz/plain_libsvm.h"

namespace {

flux::DataOptions options_of(uint8_t choice) {
  flux::DataOptions o;
  const bool values = (choice & 1) != 0;
  o.raw_keys = true;
  o.minus_one_is_zero = (choice & 2) != 0;
  o.slots = {{"a", "", (choice & 32) != 0, values}};
  o.format = "libsvm";
  if ((choice & 4) != 0) {
    o.format = "libffm";
    o.slots.push_back({"b", "", false, values});
    return o;
  }
  o.weights = (choice & 8) != 0;
  if ((choice & 16) != 0) o.group = "sid";
  return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const flux::DataOptions options = options_of(data[0]);
  const std::string line = flux::line_of(data, size);
  const auto plain = flux::plain_libsvm(options, line);
  if (options.format == "libffm")
    flux::check_same(flux::LibffmParser(options), options, line, plain);
  else
    flux::check_same(flux::LibsvmParser(options), options, line, plain);
  return 0;
}
