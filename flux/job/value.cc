#include "flux/job/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "flux/base/text.h"
#include "flux/job/utf8.h"

namespace flux {
namespace {

constexpr size_t kTextMax = 4096;

bool has_range(const ValueSpec& spec) {
  return spec.min < spec.max;
}

bool in_range(const ValueSpec& spec, double x) {
  if (!has_range(spec)) return true;
  return (spec.min_open ? x > spec.min : x >= spec.min) &&
         (spec.max_open ? x < spec.max : x <= spec.max);
}

std::string describe_number(const ValueSpec& spec) {
  if (spec.any_uint64) return "an integer from 0 to 18446744073709551615";
  std::string kind = spec.type == ValueSpec::Type::kInt ? "an integer" : "a number";
  if (!has_range(spec)) return kind;
  if (!spec.min_open && !spec.max_open) {
    return fmt::format("{} from {} to {}", kind, spec.min, spec.max);
  }
  return fmt::format("{} {} {} and {} {}", kind, spec.min_open ? "above" : "from", spec.min,
                     spec.max_open ? "below" : "up to", spec.max);
}

// Reads one node; on failure `note` may say more than that the value is not as described.
class Reader {
 public:
  explicit Reader(const ValueSpec& spec) : spec_(spec) {}

  std::optional<Value> read(const YamlNode& node) {
    switch (spec_.type) {
      case ValueSpec::Type::kInt:
        return read_integer(node);
      case ValueSpec::Type::kFloat:
        return read_float(node);
      case ValueSpec::Type::kBool:
        return read_bool(node);
      case ValueSpec::Type::kText:
        return read_text(node);
      case ValueSpec::Type::kTexts:
        return read_texts(node);
      case ValueSpec::Type::kNumbers:
        break;
    }
    return read_numbers(node);
  }
  const std::string& note() const { return note_; }
  const YamlNode* culprit() const { return culprit_; }  // the item that is wrong, if one is

 private:
  bool is_plain(const YamlNode& node, const char* what) {
    if (node.is_scalar() && node.quoted) note_ = fmt::format("{} has no quotes", what);
    return node.is_scalar() && !node.quoted;
  }

  std::optional<Value> read_integer(const YamlNode& node) {
    if (!is_plain(node, "a number")) return std::nullopt;
    std::string_view digits = node.text;
    const bool negative = digits.starts_with('-');
    if (negative) digits.remove_prefix(1);
    const bool all_digits =
        !digits.empty() &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!all_digits) {
      note_ = "write an integer with digits only";
      return std::nullopt;
    }
    if (digits.size() > 1 && digits[0] == '0') {
      note_ = "leading zeros are not allowed, since they mean octal to some readers";
      return std::nullopt;
    }
    uint64_t magnitude = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), magnitude);
    if (error != std::errc() || end != digits.end()) return std::nullopt;
    const Integer value =
        negative ? -static_cast<Integer>(magnitude) : static_cast<Integer>(magnitude);
    if (spec_.any_uint64 ? negative && magnitude > 0 : !integer_fits(value)) return std::nullopt;
    return value;
  }

  bool integer_fits(Integer value) const {
    if (value < std::numeric_limits<int64_t>::min()) return false;
    if (value > std::numeric_limits<int64_t>::max()) return false;
    return in_range(spec_, static_cast<double>(value));
  }

  std::optional<Value> read_float(const YamlNode& node) {
    if (!is_plain(node, "a number")) return std::nullopt;
    const std::string& text = node.text;
    if (text.find_first_not_of("0123456789.eE+-") != std::string::npos) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument) {
      return std::nullopt;
    }
    if (error != std::errc() || !std::isfinite(value)) {
      note_ = "it does not fit into a floating point number";
      return std::nullopt;
    }
    if (!in_range(spec_, value)) return std::nullopt;
    if (spec_.single && !in_range(spec_, static_cast<double>(static_cast<float>(value)))) {
      note_ = "in 32 bits it is rounded out of the range";
      return std::nullopt;
    }
    return value;
  }

  std::optional<Value> read_bool(const YamlNode& node) {
    if (!is_plain(node, "true or false")) return std::nullopt;
    if (node.text == "true") return true;
    if (node.text == "false") return false;
    return std::nullopt;
  }

  std::optional<Value> read_text(const YamlNode& node) {
    if (!node.is_scalar() || !text_fits(node.text)) return std::nullopt;
    return node.text;
  }

  bool text_fits(const std::string& text) {
    if (!spec_.choices.empty()) {
      note_ = nearest_name(text, spec_.choices);
      if (!note_.empty()) note_ = fmt::format("did you mean '{}'?", note_);
      return std::find(spec_.choices.begin(), spec_.choices.end(), text) != spec_.choices.end();
    }
    if (text.empty()) return spec_.may_be_empty;
    if (text.size() > kTextMax) {
      note_ = fmt::format("it is longer than {} bytes", kTextMax);
      return false;
    }
    if (std::any_of(text.begin(), text.end(), [](char c) { return is_control(c) || c == '\n'; })) {
      note_ = "it holds a control character";
      return false;
    }
    return !spec_.is_name || is_job_name(text);
  }

  std::optional<Value> read_texts(const YamlNode& node) {
    std::vector<std::string> texts;
    if (node.is_list()) {
      for (const YamlNode& item : node.items) {
        if (!item.is_scalar() || !text_fits(item.text)) {
          culprit_ = &item;
          return std::nullopt;
        }
        texts.push_back(item.text);
      }
    } else if (node.is_scalar()) {
      // --set data.train=a.tsv,b.tsv
      const bool commas = node.origin.override_index >= 0 && !node.quoted;
      texts = commas ? split(node.text, ',') : std::vector<std::string>{node.text};
      for (const std::string& text : texts) {
        if (!text_fits(text)) return std::nullopt;
      }
    } else {
      return std::nullopt;
    }
    if (texts.size() < spec_.items_min) {
      note_ = "the list is empty";
      return std::nullopt;
    }
    return texts;
  }

  std::optional<Value> read_numbers(const YamlNode& node) {
    std::vector<double> numbers;
    if (!node.is_list()) return std::nullopt;
    for (const YamlNode& item : node.items) {
      const std::optional<Value> number = read_float(item);
      if (!number) {
        culprit_ = &item;
        return std::nullopt;
      }
      numbers.push_back(std::get<double>(*number));
    }
    if (numbers.size() >= spec_.items_min) return numbers;
    note_ = "the list is empty";
    return std::nullopt;
  }

  const ValueSpec& spec_;
  std::string note_;
  const YamlNode* culprit_ = nullptr;
};

}  // namespace

bool is_job_name(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text[0] != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-';
         });
}

std::string describe_value(const ValueSpec& spec) {
  std::string choices = join(spec.choices, ", ");
  switch (spec.type) {
    case ValueSpec::Type::kInt:
    case ValueSpec::Type::kFloat:
      return describe_number(spec);
    case ValueSpec::Type::kBool:
      return "true or false";
    case ValueSpec::Type::kText:
      if (spec.choices.size() == 1) return choices;
      if (!spec.choices.empty()) return "one of " + choices;
      return spec.is_name ? "a name (at most 64 letters, digits, '_' and '-')" : "text";
    case ValueSpec::Type::kNumbers:
      return "a list of numbers";
    case ValueSpec::Type::kTexts:
      break;
  }
  if (!spec.choices.empty()) return "a list from: " + choices;
  return spec.is_name ? "a name or a list of names" : "text or a list of texts";
}

std::optional<Value> read_value(const YamlNode& node, const std::string& name,
                                const ValueSpec& spec, Problems* problems) {
  if (node.is_null()) {
    problems->add(node.origin, fmt::format("'{}' has no value", name),
                  fmt::format("it must be {}", describe_value(spec)));
    return std::nullopt;
  }
  Reader reader(spec);
  std::optional<Value> value = reader.read(node);
  if (!value) {
    const YamlNode& wrong = reader.culprit() != nullptr ? *reader.culprit() : node;
    problems->add(wrong.origin,
                  fmt::format("'{}' must be {}, not {}", name, describe_value(spec),
                              reader.culprit() != nullptr ? "a list with " + describe_node(wrong)
                                                          : describe_node(wrong)),
                  reader.note());
  }
  return value;
}

}  // namespace flux
