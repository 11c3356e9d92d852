// The plain parser of Criteo lines, kept for ever as the oracle of the fast one: split at tabs,
// strtod, strtoul. Pure; slow on purpose. Linked by tests only through data/.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace flux {

struct ReferenceRecord {
  float label = 0;
  std::vector<float> dense;
  std::vector<uint64_t> keys;
};

// False if the line (without its newline) is not a record.
bool reference_parse_criteo(std::string_view line, ReferenceRecord* out);

}  // namespace flux
