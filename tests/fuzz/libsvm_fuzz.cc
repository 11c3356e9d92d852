// Lines of libsvm and libffm: whatever the bytes, a record or a refusal that points into the line;
// and words and numbers are those of a plain reader.
// links: data storage base
#include <charconv>
#include <sstream>

#include "flux/data/decimal.h"
#include "flux/data/text/libsvm.h"
#include "tests/fuzz/lines_input.h"

namespace {

flux::DataOptions options_of(uint8_t choice) {
  flux::DataOptions o;
  const bool values = (choice & 1) != 0;
  o.raw_keys = true;
  o.minus_one_is_zero = (choice & 2) != 0;
  o.slots = {{"a", "", (choice & 32) != 0, values}};
  o.format = "libsvm";
  if ((choice & 4) != 0) {
    o.format = "libffm";
    o.slots.push_back({"b", "", false, values});
    return o;
  }
  o.weights = (choice & 8) != 0;
  if ((choice & 16) != 0) o.group = "sid";
  return o;
}

bool number(const std::string& text, float* out) {
  return !text.empty() && flux::parse_decimal(text.data(), text.data() + text.size(), out);
}

// The keys of a libsvm line whose slot has values and no text, as a plain reader finds them; none
// if a word is not INDEX or INDEX:VALUE.
std::optional<std::string> plain_keys(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  std::string out, word;
  for (char& c : line)
    if (c == '\t') c = ' ';
  bool first = true;
  for (size_t at = 0; at <= line.size(); ++at) {
    if (at < line.size() && line[at] != ' ') {
      word += line[at];
      continue;
    }
    if (word.empty()) continue;
    if (word[0] == '#') break;
    const size_t mark = word.find(':');
    if (!first && word.substr(0, mark) != "qid") {
      uint64_t key = 0;
      float value = 1;
      const std::string index = word.substr(0, mark);
      const auto [end, wrong] = std::from_chars(index.data(), index.data() + index.size(), key);
      if (wrong != std::errc() || end != index.data() + index.size()) return std::nullopt;
      if (mark != std::string::npos && !number(word.substr(mark + 1), &value)) return std::nullopt;
      out += fmt::format("{}:{:a} ", key, value);
    }
    first = false;
    word.clear();
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const flux::DataOptions options = options_of(data[0]);
  const std::string line = flux::line_of(data, size);
  flux::LineRecord record;
  if (options.format == "libffm") {
    flux::check_line(flux::LibffmParser(options), options, line, &record);
    return 0;
  }
  const auto wrong = flux::check_line(flux::LibsvmParser(options), options, line, &record);
  if (wrong || !options.slots[0].values || options.slots[0].text) return 0;
  std::string found;
  for (uint32_t i = 0; i < record.count; ++i)
    found += fmt::format("{}:{:a} ", record.keys[i], record.values[i]);
  flux::expect(plain_keys(line) == found);
  return 0;
}
