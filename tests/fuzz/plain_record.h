// PlainRecord: what a plain reader makes of a line, step by step; what the second parsers of the
// fuzz targets (plain_<format>.h) share. They are slow and obvious, written from the pages of the
// formats, and have no line in common with the parsers that they are compared with.
// A plain value. A step returns false where the line has to be refused.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "flux/base/hash.h"
#include "flux/data/dataset.h"

namespace flux {

// The parts of a text between the characters of `marks`; empty ones too.
inline std::vector<std::string> parts_of(const std::string& text, const std::string& marks) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (marks.find(c) == std::string::npos)
      out.back() += c;
    else
      out.emplace_back();
  }
  return out;
}

inline std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string& part : parts_of(text, " \t"))
    if (!part.empty()) out.push_back(part);
  return out;
}

inline std::string without_last_return(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

// A decimal number that a float can hold: no words such as nan, nothing before or behind it.
inline bool plain_number(const std::string& text, float* out) {
  for (const char c : text)
    if (std::string("0123456789.-+eE").find(c) == std::string::npos) return false;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end) return false;
  *out = static_cast<float>(value);
  return std::isfinite(*out);
}

inline bool plain_whole(const std::string& text, uint64_t* out) {
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, *out);
  return problem == std::errc() && stop == end;
}

// UTF-8 without NUL: code point by code point.
inline bool plain_utf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead == 0 || (lead >= 0x80 && lead < 0xC0) || lead >= 0xF8) return false;
    uint32_t point = bytes == 1 ? lead : lead & (0xFFU >> (bytes + 1));
    if (i + bytes > text.size()) return false;
    for (size_t k = 1; k < bytes; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0U) != 0x80) return false;
      point = point << 6 | (next & 0x3FU);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < kLeast[bytes] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return false;
    i += bytes;
  }
  return true;
}

class PlainRecord {
 public:
  explicit PlainRecord(const DataOptions& options)
      : options_(options), dense_(options.dense.size()), labels_(options.labels.size()) {}

  std::optional<size_t> find_slot(const std::string& name) const {
    for (size_t i = 0; i < options_.slots.size(); ++i)
      if (options_.slots[i].name == name) return i;
    return std::nullopt;
  }
  std::optional<size_t> find_dense(const std::string& name) const {
    for (size_t i = 0; i < options_.dense.size(); ++i)
      if (options_.dense[i] == name) return i;
    return std::nullopt;
  }

  bool set_label(size_t index, const std::string& text) {
    return index < labels_.size() && plain_number(text, &labels_[index]);
  }
  // "+1" is 1, and -1 is 0 where the job says so.
  bool set_class(size_t index, std::string text) {
    if (text.size() > 1 && text[0] == '+') {
      text.erase(0, 1);
      if (text[0] == '-') return false;
    }
    if (!set_label(index, text)) return false;
    if (options_.minus_one_is_zero && labels_[index] == -1) labels_[index] = 0;
    return true;
  }
  bool set_weight(const std::string& text) {
    return first(&has_weight_) && plain_number(text, &weight_) && weight_ >= 0;
  }
  bool set_name() { return first(&has_name_); }
  bool set_dense(size_t index, const std::string& text) {
    if (dense_[index]) return false;
    return plain_number(text, &dense_[index].emplace());
  }
  bool set_session(const std::string& text) {
    if (!first(&has_session_)) return false;
    if (options_.group != "sid") return true;
    if (!options_.raw_keys || !plain_whole(text, &group_)) group_ = hash_bytes(text);
    return true;
  }

  bool add_key(size_t slot, const std::string& text, float value) {
    const SlotOptions& known = options_.slots[slot];
    uint64_t key = 0;
    if (known.text) {
      if (text.empty() || !plain_utf8(text)) return false;
      key = hash_bytes(text);
    } else if (!plain_whole(text, &key)) {
      return false;
    }
    if (options_.group == known.name && group_ == 0) group_ = mix64(key) | 1;
    const std::string& space = known.keys.empty() ? known.name : known.keys;
    keys_.push_back({slot, options_.raw_keys ? key : hash_pair(hash_bytes(space), key), value});
    return true;
  }
  // KEY, or KEY:NUMBER in a slot with values.
  bool add_item(size_t slot, const std::string& text) {
    const size_t mark = options_.slots[slot].values ? text.rfind(':') : std::string::npos;
    if (mark == std::string::npos) return add_key(slot, text, 1);
    float value = 0;
    return plain_number(text.substr(mark + 1), &value) &&
           add_key(slot, text.substr(0, mark), value);
  }
  // KEY with a value that any slot may be given, as long as it is 1.
  bool add_weighted(size_t slot, const std::string& key, const std::string& number, float scale) {
    float value = 0;
    if (!plain_number(number, &value)) return false;
    value *= scale;
    return std::isfinite(value) && (value == 1 || options_.slots[slot].values) &&
           add_key(slot, key, value);
  }

  // As text_of() of a LineRecord.
  std::string text() const {
    bool ordered = true;
    for (size_t i = 1; i < keys_.size(); ++i) ordered &= keys_[i - 1].slot <= keys_[i].slot;
    std::string out = fmt::format("w={} group={} ordered={}", weight_, group_, ordered);
    for (const float label : labels_) out += fmt::format(" label={:a}", label);
    for (const auto& number : dense_) out += fmt::format(" dense={:a}", number.value_or(0));
    for (const Key& key : keys_) out += fmt::format(" {}:{}:{:a}", key.slot, key.key, key.value);
    return out;
  }

 private:
  struct Key {
    size_t slot;
    uint64_t key;
    float value;
  };
  // A line has at most one of these.
  static bool first(bool* has) { return !std::exchange(*has, true); }

  const DataOptions& options_;
  std::vector<std::optional<float>> dense_;
  std::vector<float> labels_;
  float weight_ = 1;
  uint64_t group_ = 0;
  bool has_weight_ = false, has_name_ = false, has_session_ = false;
  std::vector<Key> keys_;
};

}  // namespace flux
