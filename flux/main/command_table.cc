#include "flux/main/command_table.h"

#include <CLI/CLI.hpp>

namespace flux {
namespace {

// The parser's "INT:INT in [0 - 1024]" and "TEXT:FILE": what a value is, and what is allowed.
void split_type(const std::string& type, CommandFlag* flag) {
  const size_t colon = type.find(':');
  const std::string check = colon == std::string::npos ? "" : type.substr(colon + 1);
  const size_t open = check.find(" in ["), close = check.rfind(']');
  flag->value = type.substr(0, colon);
  if (open == std::string::npos || close == std::string::npos) {
    if (!check.empty()) flag->value = check;
  } else {
    flag->allowed = check.substr(open + 5, close - open - 5);
    if (const size_t dash = flag->allowed.find(" - "); dash != std::string::npos)
      flag->allowed.replace(dash, 3, " to ");
  }
  if (flag->value.empty()) flag->value = "VALUE";
}

CommandFlag flag_of(const CLI::Option& option) {
  CommandFlag flag;
  flag.positional = option.get_positional();
  flag.name = flag.positional ? option.get_single_name() : "--" + option.get_lnames().front();
  if (option.get_expected_max() != 0) split_type(option.get_type_name(), &flag);
  flag.sentence = option.get_description();
  flag.required = option.get_required();
  flag.repeated = option.get_items_expected_max() > 1;
  return flag;
}

void collect(const CLI::App& app, std::vector<std::string> path, std::vector<CommandEntry>* out) {
  CommandEntry entry{path, app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty() && (option->get_positional() || !option->get_lnames().empty()))
      entry.flags.push_back(flag_of(*option));
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands) entry.below.push_back(command->get_name());
  out->push_back(std::move(entry));
  for (const CLI::App* command : commands) {
    std::vector<std::string> below = path;
    below.push_back(command->get_name());
    collect(*command, std::move(below), out);
  }
}

}  // namespace

std::vector<CommandEntry> command_table(const CLI::App& app) {
  std::vector<CommandEntry> table;
  collect(app, {}, &table);
  return table;
}

}  // namespace flux
