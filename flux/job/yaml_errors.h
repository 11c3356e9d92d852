// What yaml-cpp says about broken YAML, in words that help: its message -> ours, with a hint.
// Pure; a message that is not known is passed on as it is.
#pragma once

#include <string>

namespace flux {

struct SyntaxError {
  std::string message{};
  std::string hint{};
  // For a bracket that is not closed in its line: what to say at the bracket instead.
  std::string at_opening{};
};
// Our own, for a bracket whose end yaml-cpp looks for among the fields below it.
inline constexpr const char* kOpenBracket =
    "the bracket that begins here is not closed in its line";
SyntaxError explain_yaml_error(const std::string& message);

}  // namespace flux
