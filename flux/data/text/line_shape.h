// LineShape: what the lines of a job hold, by name: labels, slots, dense features, weight, group;
// and how a word of a line becomes part of a record. What the text formats have in common.
//
// A slot's item is KEY (a whole number below 2^64, or text, if the slot says so), or KEY:NUMBER in
// a slot with values. Threads: immutable. Failure: LineError that names the slot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flux/base/hash.h"
#include "flux/data/dataset.h"
#include "flux/data/line_error.h"
#include "flux/data/text/line_record.h"

namespace flux {

struct LineSlot {
  std::string name;
  uint64_t space = 0;  // hash of the word that its keys belong to
  bool text = false, values = false;
};

class LineShape {
 public:
  // `options` have been checked.
  explicit LineShape(const DataOptions& options);
  LineShape(const LineShape&) = delete;
  LineShape& operator=(const LineShape&) = delete;

  const std::vector<LineSlot>& slots() const { return slots_; }
  const std::vector<std::string>& dense() const { return dense_; }
  const std::vector<std::string>& labels() const { return labels_; }
  bool weights() const { return weights_; }
  bool sessions() const { return sessions_; }  // the group of an example is its session

  // The record as it is before the first word of a line of so many bytes.
  void begin(size_t line_bytes, LineRecord* out) const;

  // Slots come first, then dense features.
  std::optional<uint32_t> find(std::string_view name) const;
  LineError unknown(std::string_view name, size_t column) const;

  // A label of two classes, or a number: "+1" is 1, and -1 is 0 where the job says so.
  std::optional<LineError> read_class(std::string_view text, size_t column, LineRecord* out) const;
  std::optional<LineError> read_label(std::string_view text, size_t column, LineRecord* out) const;
  std::optional<LineError> read_weight(std::string_view text, size_t column, LineRecord* out) const;
  // KEY or KEY:NUMBER.
  std::optional<LineError> read_item(uint32_t slot, std::string_view text, size_t column,
                                     LineRecord* out) const;
  // KEY of a slot with its value as a part of its own; only a slot with values has others than 1.
  std::optional<LineError> read_weighted(uint32_t slot, std::string_view key, size_t column,
                                         std::string_view value, float scale,
                                         LineRecord* out) const;
  // KEY of a slot, with a value that the line gave in another way.
  std::optional<LineError> read_key(uint32_t slot, std::string_view text, size_t column,
                                    float value, LineRecord* out) const;
  std::optional<LineError> read_dense(uint32_t index, std::string_view text, size_t column,
                                      LineRecord* out) const;
  // With raw keys a number stands for itself, as a converted file has it.
  void set_session(std::string_view text, LineRecord* out) const;
  // Of words that a line has at most one of: `word` is what it is called, `*has` whether it came
  // before.
  static std::optional<LineError> note_once(std::string_view word, size_t column, bool* has);
  // There is room for it: begin() made it.
  void add_key(uint32_t slot, uint64_t key, float value, LineRecord* out) const {
    if (noted_) note_key(slot, key, out);
    const uint32_t n = out->count;
    out->ordered &= n == 0 || out->slots[n - 1] <= slot;
    out->slots[n] = slot;
    out->keys[n] = raw_keys_ ? key : hash_pair(slots_[slot].space, key);
    out->values[n] = value;
    out->count = n + 1;
  }

 private:
  // For the group and the slices of metrics.
  void note_key(uint32_t slot, uint64_t key, LineRecord* out) const;

  std::vector<LineSlot> slots_;
  std::vector<std::string> dense_, labels_;
  std::unordered_map<std::string_view, uint32_t> names_;  // views of slots_ and dense_
  bool weights_, raw_keys_, minus_one_is_zero_, sessions_ = false;
  int group_ = -1;                // slot
  std::vector<uint32_t> slices_;  // slots
  bool noted_ = false;            // there is a group slot, or a slice
};

// Parts of a line, with the slack of LineParser behind it: numbers that are not empty and finite,
// and whole numbers below 2^64. False: it is none.
bool parse_number(std::string_view text, float* out);
bool parse_whole(std::string_view text, uint64_t* out);

// The group of an example by its session: the word of `data.group` that is no slot.
inline constexpr const char* kSessionGroup = "sid";

}  // namespace flux
