// ValueSpec and read_value(): one value of a job file, what it may be, and reading it.
//
// Fields of the schema and attributes of operators are checked here alike, so that every message
// has the same form: "'batch' must be an integer from 1 to 1000000, not '0'".
// Pure. Failure: a problem at the value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "flux/job/yaml_document.h"

namespace flux {

using Integer = __int128;  // holds every int64 and every uint64

struct ValueSpec {
  enum class Type : unsigned char { kInt, kFloat, kBool, kText, kTexts, kNumbers };
  Type type = Type::kText;
  double min = 0, max = 0;           // for numbers, when min < max
  bool min_open = false;             // min itself is refused
  bool max_open = false;             // max itself is refused
  bool any_uint64 = false;           // an integer from 0 to 2^64 - 1
  bool single = false;               // kept in 32 bits: the range holds after rounding
  bool is_name = false;              // text of letters, digits, '_' and '-'
  bool may_be_empty = false;         // text may be ""
  std::vector<std::string> choices;  // for text and texts, when not empty
  size_t items_min = 0;              // for texts and numbers
};

using Value =
    std::variant<Integer, double, bool, std::string, std::vector<std::string>, std::vector<double>>;

constexpr const char* kNamePattern = "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$";

// Whether the job language takes it for the name of a slot, label, table, ...: kNamePattern.
bool is_job_name(std::string_view text);

// "an integer from 1 to 64", "one of a, b": after "must be".
std::string describe_value(const ValueSpec& spec);
// nullopt, with a problem added, if the node is not such a value. `name` is for the message.
std::optional<Value> read_value(const YamlNode& node, const std::string& name,
                                const ValueSpec& spec, Problems* problems);

}  // namespace flux
