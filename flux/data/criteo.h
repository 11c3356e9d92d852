// The Criteo TSV format: label, 13 numbers, 26 hexadecimal tokens, separated by tabs.
//
// A number may be empty (0), negative or decimal; a token has 1 to 8 hex digits or is empty
// (missing, a feature of its own). parse_criteo_line() is the fast way; reference_parser.h has the
// plain one that it must always agree with. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace flux {

constexpr uint32_t kCriteoDense = 13;
constexpr uint32_t kCriteoSlots = 26;

// Key of a token in a slot (from 0); readable on purpose: the slot is in the high half.
constexpr uint64_t criteo_key(uint32_t slot, uint32_t token) {
  return (static_cast<uint64_t>(slot + 1) << 32) | token;
}
constexpr uint64_t criteo_missing_key(uint32_t slot) {
  return (static_cast<uint64_t>(slot + 1) << 32) | (1ULL << 48);
}
// Key of an example by its record number in the pass: the counting model.
constexpr uint64_t example_key(uint64_t record) { return (1ULL << 56) | record; }

// What is wrong with a line, and where.
struct LineProblem {
  uint32_t column = 0;  // from 1
  std::string what;
};

// Bytes that must be readable (any value) behind the end of a line that is parsed.
constexpr size_t kParsePadding = 16;

// Parses [line, end), where *end is '\n' or the end of the text ('\r' before it is dropped).
// dense: 13 floats. keys: 26 keys, or null to leave them. False if the line is bad: then
// find_problem() says why.
bool parse_criteo_line(const char* line, const char* end, float* label, float* dense,
                       uint64_t* keys);
LineProblem find_criteo_problem(const char* line, const char* end);

}  // namespace flux
