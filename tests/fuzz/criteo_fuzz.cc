// Criteo lines: the vector parser takes what the plain one takes, and reads the same numbers.
// links: data storage base
#include <cstring>
#include <string>

#include "flux/data/criteo_line.h"
#include "flux/data/reference_parser.h"
#include "tests/fuzz/lines_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string line = flux::line_of(data, size);
  const flux::PaddedLine padded(line);
  flux::CriteoRecord fast, plain;
  const bool taken = flux::parse_criteo_line(padded.view().data(), line.size(), &fast);
  const auto wrong = flux::reference_parse_line(padded.view(), &plain);
  if (wrong) {
    flux::expect(!taken && wrong->column >= 1 && wrong->column <= line.size() + 1);
    return 0;
  }
  if (!taken) return 0;
  flux::expect(fast.label == plain.label);
  flux::expect(std::memcmp(fast.dense, plain.dense, sizeof(float) * flux::kCriteoDense) == 0);
  flux::expect(std::memcmp(fast.keys, plain.keys, sizeof(uint64_t) * flux::kCriteoSlots) == 0);
  return 0;
}
