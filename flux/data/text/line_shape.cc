#include "flux/data/text/line_shape.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "flux/base/text.h"
#include "flux/data/decimal.h"
#include "flux/data/features/feature.h"
#include "flux/data/key_names.h"
#include "flux/data/plain_text.h"
#include "flux/data/text/number_scan.h"

namespace flux {
namespace {

constexpr uint64_t kNoKey = ~0ULL;

// For a person who wrote a value where none is expected.
const char* value_hint(bool values, std::string_view text) {
  return !values && text.find(':') != std::string_view::npos
             ? "; values (KEY:NUMBER) need 'values: true' of the slot"
             : "";
}

}  // namespace

bool parse_number(std::string_view text, float* out) {
  if (text.empty()) return false;
  if (scan_decimal(text.data(), out) == text.size()) return true;
  return parse_decimal(text.data(), text.data() + text.size(), out);
}

bool parse_whole(std::string_view text, uint64_t* out) {
  if (text.empty()) return false;
  if (scan_whole(text.data(), out) == text.size()) return true;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return problem == std::errc() && end == text.data() + text.size();
}

LineShape::LineShape(const DataOptions& options)
    : dense_(options.dense),
      labels_(options.labels),
      weights_(options.weights),
      raw_keys_(options.raw_keys),
      minus_one_is_zero_(options.minus_one_is_zero) {
  for (const SlotOptions& slot : options.slots)
    slots_.push_back({slot.name, key_space(slot.name, slot.keys), slot.text, slot.values});
  uint32_t index = 0;
  for (const LineSlot& slot : slots_) {
    if (slot.name == options.group) group_ = static_cast<int>(index);
    names_.emplace(slot.name, index++);
  }
  for (const std::string& name : dense_) names_.emplace(name, index++);
  for (const std::string& name : options.slices) slices_.push_back(names_.at(name));
  sessions_ = group_ < 0 && options.group == kSessionGroup;
  noted_ = group_ >= 0 || !slices_.empty();
}

void LineShape::begin(size_t line_bytes, LineRecord* out) const {
  out->reserve(line_bytes / 2 + 1);  // a key and what separates it from the next
  out->count = 0;
  out->labels.clear();
  out->dense.assign(dense_.size(), 0.0F);
  out->has_dense.assign(dense_.size(), 0);
  out->weight = 1;
  out->group = 0;
  out->has_weight = out->has_session = out->has_name = false;
  out->slices.assign(slices_.size(), kNoKey);
  out->ordered = true;
}

std::optional<uint32_t> LineShape::find(std::string_view name) const {
  const auto at = names_.find(name);
  if (at == names_.end()) return std::nullopt;
  return at->second;
}

LineError LineShape::unknown(std::string_view name, size_t column) const {
  std::vector<std::string> known;
  for (const LineSlot& slot : slots_) known.push_back(slot.name);
  known.insert(known.end(), dense_.begin(), dense_.end());
  return {column, fmt::format("no slot or dense feature {} is declared{}", shown_field(name),
                              did_you_mean(std::string(name), known))};
}

std::optional<LineError> LineShape::read_label(std::string_view text, size_t column,
                                               LineRecord* out) const {
  float label = 0;
  if (!parse_number(text, &label))
    return LineError{column, fmt::format("label {} is not a number", shown_field(text))};
  out->labels.push_back(label);
  return std::nullopt;
}

std::optional<LineError> LineShape::read_class(std::string_view text, size_t column,
                                               LineRecord* out) const {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  if (auto wrong = read_label(text.substr(plus ? 1 : 0), column, out)) return wrong;
  if (minus_one_is_zero_ && out->labels.back() == -1) out->labels.back() = 0;
  return std::nullopt;
}

std::optional<LineError> LineShape::read_weighted(uint32_t slot, std::string_view key,
                                                  size_t column, std::string_view value,
                                                  float scale, LineRecord* out) const {
  float number = 1;
  if (!value.empty() && !parse_number(value, &number))
    return LineError{column + static_cast<size_t>(value.data() - key.data()),
                     fmt::format("value {} of slot '{}' is not a number", shown_field(value),
                                 slots_[slot].name)};
  number *= scale;
  if (!std::isfinite(number))
    return LineError{column, fmt::format("key {} of slot '{}' has the value {} x {}, which is more "
                                         "than a float can hold",
                                         shown_field(key), slots_[slot].name, value, scale)};
  if (number != 1 && !slots_[slot].values)
    return LineError{column,
                     fmt::format("key {} of slot '{}' has the value {}; values other than 1 "
                                 "need 'values: true' of the slot",
                                 shown_field(key), slots_[slot].name, number)};
  return read_key(slot, key, column, number, out);
}

std::optional<LineError> LineShape::read_weight(std::string_view text, size_t column,
                                                LineRecord* out) const {
  if (parse_number(text, &out->weight) && out->weight >= 0) return std::nullopt;
  return LineError{column,
                   fmt::format("weight {} is not a number of at least 0", shown_field(text))};
}

std::optional<LineError> LineShape::read_dense(uint32_t index, std::string_view text, size_t column,
                                               LineRecord* out) const {
  if (out->has_dense[index] != 0)
    return LineError{column, fmt::format("dense feature '{}' comes twice; a line has at most one",
                                         dense_[index])};
  out->has_dense[index] = 1;
  if (parse_number(text, &out->dense[index])) return std::nullopt;
  return LineError{column, fmt::format("{} of dense feature '{}' is not a number",
                                       shown_field(text), dense_[index])};
}

std::optional<LineError> LineShape::read_item(uint32_t slot, std::string_view text, size_t column,
                                              LineRecord* out) const {
  const size_t mark = slots_[slot].values ? text.rfind(':') : std::string_view::npos;
  if (mark == std::string_view::npos) return read_key(slot, text, column, 1, out);
  float value = 1;
  if (!parse_number(text.substr(mark + 1), &value))
    return LineError{column + mark + 1,
                     fmt::format("value {} of slot '{}' is not a number",
                                 shown_field(text.substr(mark + 1)), slots_[slot].name)};
  return read_key(slot, text.substr(0, mark), column, value, out);
}

std::optional<LineError> LineShape::read_key(uint32_t slot, std::string_view text, size_t column,
                                             float value, LineRecord* out) const {
  const LineSlot& known = slots_[slot];
  uint64_t key = 0;
  if (known.text) {
    if (text.empty()) return LineError{column, fmt::format("slot '{}' has no key", known.name)};
    if (auto wrong = find_no_text(text)) [[unlikely]]
      return LineError{
          column + wrong->column - 1,
          fmt::format("key {} of slot '{}': {}", shown_field(text), known.name, wrong->what)};
    key = text_key(text);
  } else {
    if (!parse_whole(text, &key))
      return LineError{column,
                       fmt::format("key {} of slot '{}' is not a whole number below 2^64{}",
                                   shown_field(text), known.name, value_hint(known.values, text))};
  }
  add_key(slot, key, value, out);
  return std::nullopt;
}

std::optional<LineError> LineShape::note_once(std::string_view word, size_t column, bool* has) {
  if (*has)
    return LineError{column, fmt::format("{} comes twice; a line has at most one: take one of them "
                                         "out",
                                         shown_field(word))};
  *has = true;
  return std::nullopt;
}

void LineShape::set_session(std::string_view text, LineRecord* out) const {
  if (sessions_ && !(raw_keys_ && parse_whole(text, &out->group))) out->group = text_key(text);
}

void LineShape::note_key(uint32_t slot, uint64_t key, LineRecord* out) const {
  if (group_ == static_cast<int>(slot) && out->group == 0) out->group = mix64(key) | 1;
  for (size_t i = 0; i < slices_.size(); ++i)
    if (slices_[i] == slot && out->slices[i] == kNoKey) out->slices[i] = key;
}

}  // namespace flux
