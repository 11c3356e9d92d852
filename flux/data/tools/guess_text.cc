#include "flux/data/tools/guess_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "flux/base/text.h"
#include "flux/data/decimal.h"
#include "flux/data/text/csv.h"
#include "flux/data/text/feasign.h"
#include "flux/data/text/libsvm.h"
#include "flux/data/text/line_words.h"
#include "flux/data/text/multislot.h"
#include "flux/data/text/vw.h"

namespace flux {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : line + " ") {
    if (c != ' ' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::move(word));
      word.clear();
    }
  }
  return out;
}

bool is_number(const std::string& text) {
  float value = 0;
  const size_t skip = text.size() > 1 && text[0] == '+' ? 1 : 0;
  return !text.empty() && parse_decimal(text.data() + skip, text.data() + text.size(), &value);
}

bool is_whole(const std::string& text) {
  uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  return wrong == std::errc() && end == text.data() + text.size();
}

std::unique_ptr<const LineParser> parser_of(const DataOptions& options) {
  if (options.format == "libsvm") return std::make_unique<LibsvmParser>(options);
  if (options.format == "libffm") return std::make_unique<LibffmParser>(options);
  if (options.format == "vw") return std::make_unique<VwParser>(options);
  if (options.format == "feasign") return std::make_unique<FeasignParser>(options);
  auto columns = columns_of(options.columns, options);
  if (!columns.is_ok()) return nullptr;
  if (options.format == "csv")
    return std::make_unique<CsvParser>(options, std::move(columns).value());
  return std::make_unique<MultiSlotParser>(options, std::move(columns).value());
}

bool parses(const LineParser& parser, const std::string& line, LineRecord* record) {
  const std::string padded = line + std::string(LineParser::kSlack, '\0');
  return !parser.parse(std::string_view(padded).substr(0, line.size()), record);
}

// -1 among the labels, and no other than 1.
bool has_minus_labels(Lines lines) {
  bool minus = false;
  for (const std::string& line : lines) {
    const std::string word = line.substr(0, line.find_first_of(" \t:|"));
    if (word == "-1")
      minus = true;
    else if (word != "1" && word != "+1")
      return false;
  }
  return minus;
}

std::optional<DataOptions> checked(DataOptions options, Lines lines) {
  options.minus_one_is_zero = options.format != "multislot" && has_minus_labels(lines);
  if (!reads_all(options, lines)) return std::nullopt;
  return options;
}

}  // namespace

bool reads_all(const DataOptions& options, Lines lines) {
  const auto parser = parser_of(options);
  if (parser == nullptr) return false;
  LineRecord record;
  return !lines.empty() && std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return parses(*parser, line, &record);
  });
}

bool has_table_keys(const DataOptions& options, Lines lines) {
  constexpr uint64_t kLeast = 1ULL << 32;
  DataOptions raw = options;
  raw.raw_keys = true;
  if (options.format == "criteo_tsv" || options.slots.empty() ||
      std::any_of(raw.slots.begin(), raw.slots.end(), [](const auto& slot) { return slot.text; }))
    return false;
  if (options.format == "csv") {  // its columns are in the header
    auto columns = csv_columns(without_return(lines[0]), options);
    if (!columns.is_ok()) return false;
    raw.columns = std::move(columns).value();
    lines = lines.subspan(1);
  }
  const auto parser = parser_of(raw);
  if (parser == nullptr) return false;
  LineRecord record;
  uint64_t keys = 0, small = 0;
  for (const std::string& line : lines) {
    if (!parses(*parser, line, &record)) continue;
    for (const uint64_t key : record.line_keys()) small += key < kLeast ? 1 : 0;
    keys += record.count;
  }
  return keys > 0 && are_mistakes(small, keys);
}

std::optional<DataOptions> guess_libsvm(Lines lines) {
  DataOptions out;
  out.format = "libsvm";
  out.slots = {{"features", ""}};
  for (const std::string& line : lines) {
    const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) return std::nullopt;
    out.weights = out.weights || words[0].find(':') != std::string::npos;
    for (size_t i = 1; i < words.size(); ++i) {
      const size_t mark = words[i].find(':');
      if (mark == std::string::npos) return std::nullopt;  // more likely multislot
      if (words[i].substr(0, mark) == "qid")
        out.group = "sid";
      else
        out.slots[0].values = out.slots[0].values || words[i].substr(mark + 1) != "1";
    }
  }
  return checked(std::move(out), lines);
}

std::optional<DataOptions> guess_libffm(Lines lines) {
  constexpr uint64_t kFieldsMax = 1 << 16;
  DataOptions out;
  out.format = "libffm";
  uint64_t fields = 0;
  bool values = false;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
    for (size_t i = 1; i < words.size(); ++i) {
      const std::vector<std::string> parts = split(words[i], ':');
      if (parts.size() != 3 || !is_whole(parts[0]) || parts[0].size() > 5) return std::nullopt;
      fields = std::max<uint64_t>(fields, std::stoul(parts[0]) + 1);
      values = values || parts[2] != "1";
    }
  }
  if (fields == 0 || fields > kFieldsMax) return std::nullopt;
  for (uint64_t f = 0; f < fields; ++f)
    out.slots.push_back({fmt::format("field{}", f), "", false, values});
  return checked(std::move(out), lines);
}

namespace {

// What a namespace of vw holds.
struct Space {
  bool text = false, values = false;
};

// Names in the order in which they came.
struct VwSeen {
  std::map<std::string, Space> spaces;
  std::vector<std::string> order;  // of the namespaces
  std::set<std::string> numbers;
  std::vector<std::string> dense;  // the same
};

void add_space(const std::string& part, VwSeen* seen) {
  const std::vector<std::string> words = words_of(part);
  const bool named = !words.empty() && part.starts_with(words[0]);
  std::string name = named ? words[0] : "features";
  const size_t weight = name.find(':');
  const bool scaled = weight != std::string::npos;
  name.resize(std::min(weight, name.size()));
  if (name == "dense") {
    for (size_t i = 1; i < words.size(); ++i) {
      std::string number = words[i].substr(0, words[i].find(':'));
      if (seen->numbers.insert(number).second) seen->dense.push_back(std::move(number));
    }
    return;
  }
  const auto [at, fresh] = seen->spaces.try_emplace(name);
  if (fresh) seen->order.push_back(name);
  Space& space = at->second;
  space.values = space.values || scaled;
  for (size_t i = named ? 1 : 0; i < words.size(); ++i) {
    const size_t mark = words[i].rfind(':');
    space.values = space.values || mark != std::string::npos;
    space.text = space.text || !is_whole(words[i].substr(0, mark));
  }
}

}  // namespace

std::optional<DataOptions> guess_vw(Lines lines) {
  VwSeen seen;
  DataOptions out;
  out.format = "vw";
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = split(line, '|');
    const std::vector<std::string> head = words_of(parts[0]);
    if (parts.size() < 2 || head.empty() || !is_number(head[0])) return std::nullopt;
    out.weights = out.weights || (head.size() > 1 && is_number(head[1]));
    for (size_t i = 1; i < parts.size(); ++i) add_space(parts[i], &seen);
  }
  for (const std::string& name : seen.order)
    out.slots.push_back({name, "", seen.spaces[name].text, seen.spaces[name].values});
  out.dense = std::move(seen.dense);
  return checked(std::move(out), lines);
}

namespace {

// What the slots of multislot lines hold, by place.
struct PlaceSeen {
  bool whole = true, binary = true, one = true;
  size_t width = 0;  // of the first line
  bool same_width = true;
};

bool add_places(const std::vector<std::string>& words, bool first, std::vector<PlaceSeen>* places) {
  size_t at = 0, place = 0;
  while (at < words.size()) {
    if (!is_whole(words[at]) || words[at].size() > 6) return false;
    const size_t count = std::stoul(words[at++]);
    if (count > words.size() - at) return false;
    if (first) places->push_back({.width = count});
    if (place == places->size()) return false;
    PlaceSeen& seen = (*places)[place++];
    seen.one = seen.one && count == 1;
    seen.same_width = seen.same_width && count == seen.width;
    for (size_t i = 0; i < count; ++i, ++at) {
      if (!is_number(words[at])) return false;
      seen.whole = seen.whole && is_whole(words[at]);
      seen.binary = seen.binary && (words[at] == "0" || words[at] == "1");
    }
  }
  return place == places->size();
}

}  // namespace

std::optional<DataOptions> guess_multislot(Lines lines) {
  std::vector<PlaceSeen> places;
  for (const std::string& line : lines)
    if (!add_places(words_of(line), &line == lines.data(), &places)) return std::nullopt;
  DataOptions out;
  out.format = "multislot";
  const auto label = std::find_if(places.begin(), places.end(),
                                  [](const PlaceSeen& seen) { return seen.one && seen.binary; });
  if (label == places.end() || places.size() < 2) return std::nullopt;
  for (size_t p = 0; p < places.size(); ++p) {
    const PlaceSeen& seen = places[p];
    if (p == static_cast<size_t>(label - places.begin())) {
      out.columns.emplace_back("label");
    } else if (seen.whole) {
      out.slots.push_back({fmt::format("slot{}", p + 1), ""});
      out.columns.push_back(out.slots.back().name);
    } else if (seen.same_width && seen.width > 0) {
      const size_t first = out.dense.size();
      for (size_t i = 0; i < seen.width; ++i)
        out.dense.push_back(seen.width == 1 ? fmt::format("number{}", p + 1)
                                            : fmt::format("number{}_{}", p + 1, i + 1));
      out.columns.push_back(seen.width == 1 ? out.dense.back()
                                            : out.dense[first] + ".." + out.dense.back());
    } else {
      return std::nullopt;
    }
  }
  return checked(std::move(out), lines);
}

}  // namespace flux
