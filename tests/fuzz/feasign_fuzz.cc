// Lines of feasign: what the parser makes of a line is what a plain reader makes of it, word by
// word, and a refusal points into the line. The first byte chooses the job.
// links: data storage base
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "flux/base/hash.h"
#include "flux/data/decimal.h"
#include "flux/data/text/feasign.h"
#include "flux/data/text/test_lines.h"

namespace {

flux::DataOptions options_of(uint8_t choice) {
  flux::DataOptions o;
  o.format = "feasign";
  o.slots = {{"user", ""}, {"item", ""}, {"history", "item"}};
  o.dense = {"price", "age"};
  if ((choice & 1) != 0) o.labels = {"click", "buy"};
  o.weights = (choice & 2) != 0;
  if ((choice & 4) != 0) o.group = "user";
  if ((choice & 8) != 0) o.group = "sid";
  if ((choice & 16) != 0) o.slots[2].values = true;
  if ((choice & 32) != 0) o.slots[1].text = true;
  if ((choice & 64) != 0) o.slots[1].values = true;
  return o;
}

// A word of the line as the format's page describes it, with the simplest means.
class PlainReader {
 public:
  explicit PlainReader(const flux::DataOptions& options) : options_(options) {}

  bool read(const std::string& line) {
    std::vector<std::string> words(1);
    for (const char c : line) {
      if (c == ' ' || c == '\t')
        words.emplace_back();
      else
        words.back() += c;
    }
    bool first = true;
    for (const std::string& word : words) {
      if (word.empty()) continue;
      if (!(first ? read_labels(word) : read_word(word))) return false;
      first = false;
    }
    return !first;
  }

  std::vector<float> labels;
  float weight = 1;
  std::map<std::string, float> dense;
  std::vector<std::pair<uint64_t, float>> keys;  // in the order of the line

 private:
  static bool number(const std::string& text, float* out) {
    return !text.empty() && flux::parse_decimal(text.data(), text.data() + text.size(), out);
  }
  bool read_labels(const std::string& word) {
    std::string rest = word + ",";
    for (size_t at; (at = rest.find(',')) != std::string::npos; rest.erase(0, at + 1))
      if (!number(rest.substr(0, at), &labels.emplace_back())) return false;
    return labels.size() == options_.labels.size();
  }
  bool read_word(const std::string& word) {
    const size_t colon = word.find(':'), equal = word.find('=');
    if (equal < colon) return read_note(word.substr(0, equal), word.substr(equal + 1));
    if (colon == std::string::npos) return false;
    const std::string name = word.substr(0, colon), value = word.substr(colon + 1);
    for (const std::string& known : options_.dense)
      if (known == name) return !dense.contains(name) && number(value, &dense[name]);
    for (const flux::SlotOptions& slot : options_.slots)
      if (slot.name == name) return read_key(slot, value);
    return false;
  }
  bool read_note(const std::string& name, const std::string& value) {
    if (name == "w") return options_.weights && number(value, &weight) && weight >= 0;
    return name == "id" || name == "sid";
  }
  bool read_key(const flux::SlotOptions& slot, std::string text) {
    float value = 1;
    const size_t mark = text.rfind(':');
    if (slot.values && mark != std::string::npos) {
      if (!number(text.substr(mark + 1), &value)) return false;
      text.resize(mark);
    }
    uint64_t key = 0;
    if (slot.text) {
      if (text.empty()) return false;
      key = flux::hash_bytes(text);
    } else {
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), key);
      if (problem != std::errc() || end != text.data() + text.size()) return false;
    }
    const std::string& space = slot.keys.empty() ? slot.name : slot.keys;
    keys.emplace_back(flux::hash_pair(flux::hash_bytes(space), key), value);
    return true;
  }

  const flux::DataOptions& options_;
};

void expect(bool true_thing) {
  if (!true_thing) __builtin_trap();
}

void compare(const flux::DataOptions& options, const PlainReader& plain,
             const flux::LineRecord& record) {
  expect(record.labels == plain.labels && record.weight == plain.weight);
  expect(record.count == plain.keys.size());
  for (size_t i = 0; i < plain.keys.size(); ++i) {
    expect(record.keys[i] == plain.keys[i].first && record.slots[i] < options.slots.size());
    expect(record.values[i] == plain.keys[i].second);
  }
  for (size_t d = 0; d < options.dense.size(); ++d) {
    const auto found = plain.dense.find(options.dense[d]);
    expect(record.dense[d] == (found == plain.dense.end() ? 0.0F : found->second));
    expect(std::isfinite(record.dense[d]));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const flux::DataOptions options = options_of(data[0]);
  std::string line(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const size_t end = line.find('\n'); end != std::string::npos) line.resize(end);
  const flux::FeasignParser parser(options);
  flux::LineRecord record;
  const auto refused = parser.parse(flux::PaddedLine(line).view(), &record);
  const size_t length = line.size();
  if (!line.empty() && line.back() == '\r') line.pop_back();
  PlainReader plain(options);
  expect(plain.read(line) == !refused.has_value());
  if (refused)
    expect(refused->column >= 1 && refused->column <= length + 1 && !refused->what.empty());
  else
    compare(options, plain, record);
  return 0;
}
