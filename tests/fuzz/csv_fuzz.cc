// Lines and headers of csv: whatever the bytes, what a second parser makes of them, or a refusal
// that points into the line.
// links: data storage base
#include "flux/data/text/csv.h"
#include "tests/fuzz/lines_input.h"
#include "tests/fuzz/plain_csv.h"

namespace {

flux::DataOptions options_of(uint8_t choice) {
  flux::DataOptions o;
  o.format = "csv";
  o.raw_keys = (choice & 1) != 0;
  o.slots = {{"user", "", false, (choice & 2) != 0}, {"city", "", true}};
  o.dense = {"price"};
  o.columns = {"label", "user", "city", "price"};
  if ((choice & 4) != 0) {
    o.weights = true;
    o.columns.emplace_back("weight");
  }
  if ((choice & 8) != 0) {
    o.group = "sid";
    o.columns.insert(o.columns.begin(), {"sid", "-", "id"});
  }
  if ((choice & 16) != 0) o.csv.separator = "tab";
  if ((choice & 32) != 0) o.csv.quote = "";
  if ((choice & 64) != 0) o.csv.list = "";
  if ((choice & 128) != 0) o.csv.missing = {"NA", "-"};
  return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const flux::DataOptions options = options_of(data[0]);
  const std::string line = flux::line_of(data, size);
  const auto columns = flux::columns_of(options.columns, options);
  flux::expect(columns.is_ok());
  const flux::CsvParser parser(options, columns.value());
  flux::check_same(parser, options, line, flux::plain_csv(options, line));
  const auto names = flux::csv_columns(line, options);
  if (names.is_ok()) flux::expect(names.value().size() <= line.size() + 1);
  return 0;
}
