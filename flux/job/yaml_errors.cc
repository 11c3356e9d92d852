#include "flux/job/yaml_errors.h"

#include <map>

#include <yaml-cpp/exceptions.h>

namespace flux {

SyntaxError explain_yaml_error(const std::string& message) {
  namespace Msg = YAML::ErrorMsg;
  static const std::map<std::string, SyntaxError> known = {
      {Msg::TAB_IN_INDENTATION, {"a tab in the indentation", "indent with spaces"}},
      {Msg::MAP_VALUE,
       {"a ':' is not expected here",
        "check the indentation and the line above; put text that holds ': ' in quotes"}},
      {Msg::MAP_KEY, {"a field is not expected here", "check the indentation"}},
      {Msg::BLOCK_ENTRY, {"a '- ' is not expected here", "check the indentation"}},
      {Msg::END_OF_SEQ_FLOW,
       {"a ',' or ']' is missing before this", "add the missing ',' or ']'",
        "the list that begins here is not closed"}},
      {Msg::END_OF_MAP_FLOW,
       {"a ',' or '}' is missing before this", "add the missing ',' or '}'",
        "the map that begins here is not closed"}},
      {Msg::END_OF_MAP,
       {"this does not continue the fields above it", "check the indentation and the line above"}},
      {Msg::END_OF_SEQ,
       {"this does not continue the list above it", "check the indentation and the '- '"}},
      {Msg::FLOW_END, {"a closing bracket without its opening one", "remove it"}},
      {kOpenBracket, {kOpenBracket, "add the missing '}' or ']'"}},
      {Msg::UNKNOWN_TOKEN, {"this character cannot begin a value", "put the text in quotes"}},
      {Msg::UNKNOWN_ANCHOR, {"this alias has no anchor above it", "define it with '&' first"}},
  };
  const auto found = known.find(message);
  return found == known.end() ? SyntaxError{message, "", ""} : found->second;
}

}  // namespace flux
