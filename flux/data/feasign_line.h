// The parser of a feasign line: labels, then features by name in any order.
//
//   1 user:17 item:9 history:3 history:5 price:0.5
//   1,0 w=0.5 id=a7 sid=s31 user:17 ...
//
// Words are separated by blanks or tabs. The first has the labels, with commas between them; w= is
// the example's weight, id= a name that is not used, sid= a search or session. A slot's word is
// NAME:KEY with KEY a whole number below 2^64 (or text, if the slot says so) and may come any
// number of times; in a slot with values it may be NAME:KEY:NUMBER. A dense feature's word is
// NAME:NUMBER and comes at most once (0 if it does not). Format: docs/using/feasign.md. Threads:
// immutable; each thread has its own record. Failure: LineError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flux/data/dataset.h"
#include "flux/data/line_error.h"

namespace flux {

// One line. Reused, so that nothing is allocated from line to line.
struct FeasignRecord {
  std::vector<float> labels, dense;
  std::vector<uint8_t> has_dense;  // which dense features the line names
  float weight = 1;
  uint64_t group = 0;
  std::vector<uint64_t> slices;  // of DataOptions::slices; ~0: the line has no such key
  std::vector<uint32_t> slots;   // of each key
  std::vector<uint64_t> keys;    // as they are in tables
  std::vector<float> values;     // of each key, where some slot has them
  bool ordered = true;           // slots never fall
};

class FeasignParser {
 public:
  // `options` have been checked.
  explicit FeasignParser(const DataOptions& options);
  // One '\r' at the end is ignored.
  std::optional<LineError> parse(std::string_view line, FeasignRecord* out) const;

 private:
  struct Slot {
    std::string name;
    uint64_t space = 0;  // hash of the word that its keys belong to
    bool text = false, values = false;
  };
  struct Cursor;
  std::optional<LineError> read_labels(Cursor* at, FeasignRecord* out) const;
  // w=, id=, sid=
  std::optional<LineError> read_note(std::string_view word, size_t column,
                                     FeasignRecord* out) const;
  std::optional<LineError> read_feature(std::string_view word, size_t column,
                                        FeasignRecord* out) const;
  std::optional<LineError> read_key(uint32_t slot, std::string_view text, size_t column,
                                    FeasignRecord* out) const;
  std::optional<LineError> read_dense(uint32_t index, std::string_view text, size_t column,
                                      FeasignRecord* out) const;
  // Slots come first, then dense features.
  std::optional<uint32_t> find(std::string_view name, uint32_t guess) const;
  LineError unknown(std::string_view name, size_t column) const;

  std::vector<Slot> slots_;
  std::vector<std::string> dense_;
  std::unordered_map<std::string_view, uint32_t> names_;  // views of the two above
  size_t labels_;
  bool weights_, raw_keys_;
  bool values_ = false;           // some slot has them
  int group_ = -1;                // slot
  std::vector<uint32_t> slices_;  // slots
  bool group_is_sid_ = false;
};

// The group of an example by its session: the word of `data.group` that is no slot.
inline constexpr const char* kSessionGroup = "sid";

}  // namespace flux
