#include "flux/data/text/feasign_fast.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "flux/data/text/number_scan.h"
#include "flux/data/text/word_scan.h"

namespace flux {
namespace {

constexpr uint32_t kNone = ~0U;

// Whether it is the first of its kind in a line.
bool first(bool* has) {
  return !std::exchange(*has, true);
}

}  // namespace

FastFeasign::FastFeasign(const LineShape& shape)
    : shape_(shape), slots_(static_cast<uint32_t>(shape.slots().size())) {
  const auto add = [this](const std::string& text, bool is_text, bool values) {
    Name name;
    const std::string marked = text + ":";
    name.length = static_cast<uint32_t>(marked.size());
    const uint32_t head = std::min(name.length, 16U);
    std::memcpy(name.head, marked.data(), head);
    name.mask = (1U << head) - 1;
    name.tail = marked.substr(head);
    name.text = is_text;
    name.values = values;
    names_.push_back(std::move(name));
  };
  for (const LineSlot& slot : shape.slots()) add(slot.name, slot.text, slot.values);
  for (const std::string& name : shape.dense()) add(name, false, false);
}

inline bool FastFeasign::matches(const Name& name, __m128i text, const char* at) const {
  const __m128i head = _mm_load_si128(reinterpret_cast<const __m128i*>(name.head));
  const auto equal = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(head, text)));
  if ((equal & name.mask) != name.mask) return false;
  return name.length <= 16 || std::memcmp(at + 16, name.tail.data(), name.tail.size()) == 0;
}

// Names longer than the slack behind a line are not compared beyond its end.
uint32_t FastFeasign::find(const char* at, const char* end, uint32_t before,
                           LineRecord* out) const {
  const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const auto room = static_cast<size_t>(end - at);
  if (before != kNone && names_[before].length <= room && matches(names_[before], text, at))
    return before;
  uint32_t* follows = out->follows.data() + (before == kNone ? names_.size() : before);
  if (*follows != kNone && names_[*follows].length <= room && matches(names_[*follows], text, at))
    return *follows;
  const auto* mark = static_cast<const char*>(std::memchr(at, ':', room));
  if (mark == nullptr) return kNone;
  const auto found = shape_.find({at, static_cast<size_t>(mark - at)});
  if (!found) return kNone;
  *follows = *found;
  return *found;
}

bool FastFeasign::read_labels(const char** at, LineRecord* out) const {
  const size_t labels = shape_.labels().size();
  for (size_t l = 0; l < labels; ++l) {
    if (l > 0 && *(*at)++ != ',') return false;
    float label = 0;
    const uint32_t length = scan_decimal(*at, &label);
    if (length == 0) return false;
    *at += length;
    out->labels.push_back(label);
  }
  return true;
}

// w=NUMBER, id=TEXT, sid=TEXT
bool FastFeasign::read_note(const char** at, const char* end, LineRecord* out) const {
  const char* word = *at;
  if (word[0] == 'w' && word[1] == '=') {
    const uint32_t length = scan_decimal(word + 2, &out->weight);
    *at = word + 2 + length;
    return length > 0 && shape_.weights() && out->weight >= 0 && first(&out->has_weight);
  }
  const bool session = word[0] == 's';
  const char* name = word + (session ? 1 : 0);
  if (std::memcmp(name, "id=", 3) != 0 || end - name < 3) return false;
  *at = word_end(name + 3, end);
  if (!first(session ? &out->has_session : &out->has_name)) return false;
  if (session) shape_.set_session({name + 3, static_cast<size_t>(*at - name - 3)}, out);
  return true;
}

bool FastFeasign::read_text_key(uint32_t slot, const char** at, const char* end,
                                LineRecord* out) const {
  const char* begin = *at;
  *at = word_end(begin, end);
  const std::string_view text(begin, static_cast<size_t>(*at - begin));
  return !shape_.read_item(slot, text, 1, out);
}

inline bool FastFeasign::read_key(uint32_t slot, const char** at, const char* end,
                                  LineRecord* out) const {
  const Name& name = names_[slot];
  if (name.text) [[unlikely]]
    return read_text_key(slot, at, end, out);
  uint64_t key = 0;
  float value = 1;
  const uint32_t length = scan_whole(*at, &key);
  if (length == 0) return false;
  *at += length;
  if (name.values && **at == ':') {
    const uint32_t more = scan_decimal(*at + 1, &value);
    if (more == 0) return false;
    *at += more + 1;
  }
  shape_.add_key(slot, key, value, out);
  return true;
}

inline bool FastFeasign::read_dense(uint32_t index, const char** at, LineRecord* out) const {
  const uint32_t length = scan_decimal(*at, &out->dense[index]);
  *at += length;
  return length > 0 && out->has_dense[index]++ == 0;
}

bool FastFeasign::parse(std::string_view line, LineRecord* out) const {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  shape_.begin(line.size(), out);
  if (out->follows.size() != names_.size() + 1) out->follows.assign(names_.size() + 1, kNone);
  const char* at = line.data();
  const char* const end = at + line.size();
  if (!read_labels(&at, out)) return false;
  uint32_t before = kNone;
  while (at < end) {
    if (!is_blank(*at)) return false;
    while (is_blank(*at) && at < end) ++at;
    if (at >= end) break;
    const uint32_t found = find(at, end, before, out);
    if (found == kNone) {
      if (!read_note(&at, end, out)) return false;
      continue;
    }
    before = found;
    at += names_[found].length;
    if (!(found < slots_ ? read_key(found, &at, end, out) : read_dense(found - slots_, &at, out)))
      return false;
  }
  return at == end;
}

}  // namespace flux
