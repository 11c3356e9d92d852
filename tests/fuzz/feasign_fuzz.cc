// Lines of feasign: whatever the bytes, what a second parser makes of them, or a refusal that
// points into the line.
// links: data storage base
#include "flux/data/text/feasign.h"
#include "tests/fuzz/lines_input.h"
#include "tests/fuzz/plain_feasign.h"

namespace {

flux::DataOptions options_of(uint8_t choice) {
  flux::DataOptions o;
  o.format = "feasign";
  o.slots = {{"user", ""}, {"item", ""}, {"history", "item"}};
  o.dense = {"price", "age"};
  if ((choice & 1) != 0) o.labels = {"click", "buy"};
  o.weights = (choice & 2) != 0;
  if ((choice & 4) != 0) o.group = "user";
  if ((choice & 8) != 0) o.group = "sid";
  if ((choice & 16) != 0) o.slots[2].values = true;
  if ((choice & 32) != 0) o.slots[1].text = true;
  if ((choice & 64) != 0) o.slots[1].values = true;
  return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const flux::DataOptions options = options_of(data[0]);
  const std::string line = flux::line_of(data, size);
  flux::check_same(flux::FeasignParser(options), options, line, flux::plain_feasign(options, line));
  return 0;
}
