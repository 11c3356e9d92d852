// Lines of multislot: the fast parser takes nothing that the plain one refuses, and reads what it
// reads.
// links: data storage base
#include "flux/data/text/multislot.h"
#include "tests/fuzz/lines_input.h"

namespace {

flux::DataOptions options_of(uint8_t choice) {
  flux::DataOptions o;
  o.format = "multislot";
  o.slots = {{"user", ""}, {"item", ""}};
  o.dense = {"price", "age"};
  o.columns = {"label", "user", "item", "dense"};
  o.raw_keys = (choice & 1) != 0;
  if ((choice & 2) != 0) o.slots[1].text = true;
  if ((choice & 4) != 0) {
    o.weights = true;
    o.columns.insert(o.columns.begin(), "weight");
  }
  if ((choice & 8) != 0) {
    o.group = "sid";
    o.columns.insert(o.columns.begin(), (choice & 16) != 0 ? "logkey" : "sid");
  }
  if ((choice & 32) != 0) o.columns.insert(o.columns.begin() + 1, "-");
  if ((choice & 64) != 0) {
    o.columns.pop_back();
    o.columns.insert(o.columns.end(), {"age", "id", "price"});
  }
  return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const flux::DataOptions options = options_of(data[0]);
  const std::string line = flux::line_of(data, size);
  const auto columns = flux::multislot_columns(options);
  flux::expect(columns.is_ok());
  const flux::LineShape shape(options);
  const flux::FastMultiSlot fast(shape, columns.value());
  const flux::PlainMultiSlot plain(shape, columns.value());
  flux::LineRecord by_plain, by_fast;
  const auto wrong = flux::check_line(plain, options, line, &by_plain);
  if (!fast.parse(flux::PaddedLine(line).view(), &by_fast)) return 0;
  flux::expect(!wrong && flux::text_of(by_fast) == flux::text_of(by_plain));
  return 0;
}
