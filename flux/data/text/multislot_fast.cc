#include <algorithm>
#include <cstring>

#include "flux/data/text/multislot.h"
#include "flux/data/text/number_scan.h"
#include "flux/data/text/word_scan.h"

namespace flux {
namespace {

// The number of values: mostly one digit. 0 bytes: none.
inline uint32_t scan_count(const char* at, uint64_t* out) {
  const auto digit = static_cast<uint8_t>(at[0] - '0');
  if (digit <= 9 && at[1] == ' ') [[likely]] {
    *out = digit;
    return 1;
  }
  return scan_whole(at, out);
}

bool skip_words(uint64_t count, const char** at, const char* end) {
  for (uint64_t i = 0; i < count; ++i) {
    if (**at != ' ' || end - *at < 2 || is_blank((*at)[1])) return false;
    *at = word_end(*at + 1, end);
  }
  return true;
}

}  // namespace

inline bool FastMultiSlot::read_keys(uint32_t slot, uint64_t count, const char** at,
                                     LineRecord* out) const {
  const char* p = *at;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t key = 0;
    if (*p != ' ') return false;
    const uint32_t length = scan_whole(p + 1, &key);
    if (length == 0) return false;
    p += length + 1;
    if (key != 0) shape_.add_key(slot, key, 1, out);
  }
  *at = p;
  return true;
}

inline bool FastMultiSlot::read_dense(uint32_t first, uint64_t count, const char** at,
                                      LineRecord* out) const {
  const char* p = *at;
  for (uint64_t i = 0; i < count; ++i) {
    if (*p != ' ') return false;
    const uint32_t length = scan_decimal(p + 1, &out->dense[first + i]);
    if (length == 0) return false;
    p += length + 1;
  }
  *at = p;
  return true;
}

// A column with one value that is no key and no dense feature.
bool FastMultiSlot::read_word(const LineColumn& column, const char** at, const char* end,
                              LineRecord* out) const {
  if (**at != ' ' || end - *at < 2) return false;
  const char* begin = *at + 1;
  *at = word_end(begin, end);
  const std::string_view word(begin, static_cast<size_t>(*at - begin));
  if (word.empty()) return false;
  if (column.kind == LineColumn::kSid) shape_.set_session(word, out);
  if (column.kind == LineColumn::kLogKey) shape_.set_session(search_of_logkey(word), out);
  return column.kind != LineColumn::kWeight || !shape_.read_weight(word, 1, out);
}

bool FastMultiSlot::parse(std::string_view line, LineRecord* out) const {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  shape_.begin(line.size(), out);
  out->labels.resize(shape_.labels().size());
  const char* at = line.data();
  const char* const end = at + line.size();
  for (const LineColumn& column : columns_) {
    uint64_t count = 0;
    const uint32_t length = scan_count(at, &count);
    at += length;
    if (length == 0) return false;
    bool good = false;
    if (column.kind == LineColumn::kSlot && !shape_.slots()[column.index].text) {
      good = read_keys(column.index, count, &at, out);
    } else if (column.kind == LineColumn::kAllDense) {
      good = count == out->dense.size() && read_dense(0, count, &at, out);
    } else if (column.kind == LineColumn::kDense) {
      good = count == column.width && read_dense(column.index, count, &at, out);
    } else if (column.kind == LineColumn::kSkip) {
      good = skip_words(count, &at, end);
    } else if (count != 1) {
      return false;
    } else if (column.kind == LineColumn::kLabel) {
      const uint32_t more = *at == ' ' ? scan_decimal(at + 1, &out->labels[column.index]) : 0;
      good = more > 0;
      at += more + 1;
    } else if (column.kind != LineColumn::kSlot) {
      good = read_word(column, &at, end, out);
    }
    if (!good) return false;
    if (*at == ' ') ++at;  // else the last
  }
  while (at < end && *at == ' ') ++at;
  return at == end;
}

}  // namespace flux
