#include "flux/data/feasign_line.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "flux/base/hash.h"
#include "flux/base/text.h"
#include "flux/data/decimal.h"
#include "flux/data/features/feature.h"

namespace flux {
namespace {

constexpr uint64_t kNoKey = ~0ULL;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

bool parse_number(std::string_view text, float* out) {
  return !text.empty() && parse_decimal(text.data(), text.data() + text.size(), out);
}

// For a person who wrote a value where none is expected.
const char* value_hint(bool values, std::string_view text) {
  return !values && text.find(':') != std::string_view::npos
             ? "; values (KEY:NUMBER) need 'values: true' of the slot"
             : "";
}

}  // namespace

struct FeasignParser::Cursor {
  std::string_view line;
  size_t at = 0;

  // The next word, empty at the end.
  std::string_view next() {
    while (at < line.size() && is_blank(line[at])) ++at;
    const size_t begin = at;
    while (at < line.size() && !is_blank(line[at])) ++at;
    return line.substr(begin, at - begin);
  }
  size_t column_of(std::string_view word) const {
    return static_cast<size_t>(word.data() - line.data()) + 1;
  }
};

FeasignParser::FeasignParser(const DataOptions& options)
    : dense_(options.dense),
      labels_(options.labels.size()),
      weights_(options.weights),
      raw_keys_(options.raw_keys) {
  for (const SlotOptions& slot : options.slots)
    slots_.push_back({slot.name, key_space(slot.name, slot.keys), slot.text, slot.values});
  uint32_t index = 0;
  for (const Slot& slot : slots_) {
    values_ = values_ || slot.values;
    if (slot.name == options.group) group_ = static_cast<int>(index);
    names_.emplace(slot.name, index++);
  }
  for (const std::string& name : dense_) names_.emplace(name, index++);
  for (const std::string& name : options.slices) slices_.push_back(names_.at(name));
  group_is_sid_ = group_ < 0 && options.group == kSessionGroup;
}

std::optional<LineError> FeasignParser::parse(std::string_view line, FeasignRecord* out) const {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  out->dense.assign(dense_.size(), 0.0F);
  out->has_dense.assign(dense_.size(), 0);
  out->labels.clear();
  out->slots.clear();
  out->keys.clear();
  out->values.clear();
  out->weight = 1;
  out->group = 0;
  out->slices.assign(slices_.size(), kNoKey);
  out->ordered = true;
  Cursor at{line};
  if (auto wrong = read_labels(&at, out)) return wrong;
  for (std::string_view word = at.next(); !word.empty(); word = at.next()) {
    const size_t column = at.column_of(word);
    const size_t mark = word.find_first_of(":=");
    auto wrong = mark != std::string_view::npos && word[mark] == '='
                     ? read_note(word, column, out)
                     : read_feature(word, column, out);
    if (wrong) return wrong;
  }
  return std::nullopt;
}

std::optional<LineError> FeasignParser::read_labels(Cursor* at, FeasignRecord* out) const {
  const std::string_view word = at->next();
  if (word.empty()) return LineError{1, "an empty line; a line begins with its label"};
  size_t begin = 0;
  while (begin <= word.size()) {
    const size_t end = std::min(word.find(',', begin), word.size());
    float label = 0;
    if (!parse_number(word.substr(begin, end - begin), &label))
      return LineError{at->column_of(word) + begin,
                       fmt::format("label {} is not a number; a line begins with {} label{}",
                                   shown_field(word.substr(begin, end - begin)), labels_,
                                   labels_ == 1 ? "" : "s, with commas between them")};
    out->labels.push_back(label);
    begin = end + 1;
  }
  if (out->labels.size() == labels_) return std::nullopt;
  return LineError{at->column_of(word),
                   fmt::format("{} label{}, but data.labels names {}", out->labels.size(),
                               out->labels.size() == 1 ? "" : "s", labels_)};
}

std::optional<LineError> FeasignParser::read_note(std::string_view word, size_t column,
                                                  FeasignRecord* out) const {
  const size_t mark = word.find('=');
  const std::string_view name = word.substr(0, mark), value = word.substr(mark + 1);
  if (name == "id") return std::nullopt;
  if (name == "sid") {
    if (group_is_sid_) out->group = hash_bytes(value);
    return std::nullopt;
  }
  if (name != "w")
    return LineError{column, fmt::format("{} is not known; w=, id= and sid= are, features are "
                                         "NAME:KEY",
                                         shown_field(word.substr(0, mark + 1)))};
  if (!weights_)
    return LineError{column,
                     "the example has a weight, but the job does not say data.weights: "
                     "true"};
  if (!parse_number(value, &out->weight) || !(out->weight >= 0))
    return LineError{column + mark + 1,
                     fmt::format("weight {} is not a number of at least 0", shown_field(value))};
  return std::nullopt;
}

std::optional<uint32_t> FeasignParser::find(std::string_view name, uint32_t guess) const {
  for (uint32_t slot = guess; slot < std::min<size_t>(guess + 2, slots_.size()); ++slot)
    if (slots_[slot].name == name) return slot;
  const auto at = names_.find(name);
  if (at == names_.end()) return std::nullopt;
  return at->second;
}

LineError FeasignParser::unknown(std::string_view name, size_t column) const {
  std::vector<std::string> known;
  for (const Slot& slot : slots_) known.push_back(slot.name);
  known.insert(known.end(), dense_.begin(), dense_.end());
  return {column, fmt::format("no slot or dense feature {} is declared{}", shown_field(name),
                              did_you_mean(std::string(name), known))};
}

std::optional<LineError> FeasignParser::read_dense(uint32_t index, std::string_view text,
                                                   size_t column, FeasignRecord* out) const {
  if (out->has_dense[index] != 0)
    return LineError{column, fmt::format("dense feature '{}' comes twice; a line has at most one",
                                         dense_[index])};
  out->has_dense[index] = 1;
  if (parse_number(text, &out->dense[index])) return std::nullopt;
  return LineError{column, fmt::format("{} of dense feature '{}' is not a number",
                                       shown_field(text), dense_[index])};
}

std::optional<LineError> FeasignParser::read_feature(std::string_view word, size_t column,
                                                     FeasignRecord* out) const {
  const size_t mark = word.find(':');
  if (mark == std::string_view::npos)
    return LineError{column,
                     fmt::format("{} is no feature; features are NAME:KEY", shown_field(word))};
  const std::string_view name = word.substr(0, mark), text = word.substr(mark + 1);
  const auto found = find(name, out->slots.empty() ? 0 : out->slots.back());
  if (!found) return unknown(name, column);
  if (*found >= slots_.size())
    return read_dense(*found - static_cast<uint32_t>(slots_.size()), text, column + mark + 1, out);
  return read_key(*found, text, column + mark + 1, out);
}

std::optional<LineError> FeasignParser::read_key(uint32_t slot, std::string_view text,
                                                 size_t column, FeasignRecord* out) const {
  const Slot& known = slots_[slot];
  float value = 1;
  if (known.values) {
    const size_t mark = text.rfind(':');
    if (mark != std::string_view::npos) {
      if (!parse_number(text.substr(mark + 1), &value))
        return LineError{column + mark + 1,
                         fmt::format("value {} of slot '{}' is not a number",
                                     shown_field(text.substr(mark + 1)), known.name)};
      text = text.substr(0, mark);
    }
  }
  uint64_t key = 0;
  if (known.text) {
    if (text.empty()) return LineError{column, fmt::format("slot '{}' has no key", known.name)};
    key = hash_bytes(text);
  } else {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), key);
    if (problem != std::errc() || end != text.data() + text.size())
      return LineError{column,
                       fmt::format("key {} of slot '{}' is not a whole number below 2^64{}",
                                   shown_field(text), known.name, value_hint(known.values, text))};
  }
  if (group_ == static_cast<int>(slot) && out->group == 0) out->group = mix64(key) | 1;
  for (size_t i = 0; i < slices_.size(); ++i)
    if (slices_[i] == slot && out->slices[i] == kNoKey) out->slices[i] = key;
  out->ordered = out->ordered && (out->slots.empty() || out->slots.back() <= slot);
  out->slots.push_back(slot);
  out->keys.push_back(raw_keys_ ? key : hash_pair(known.space, key));
  if (values_) out->values.push_back(value);
  return std::nullopt;
}

}  // namespace flux
