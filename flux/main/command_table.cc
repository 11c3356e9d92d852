#include "flux/main/command_table.h"

#include <CLI/CLI.hpp>

namespace flux {
namespace {

CommandFlag flag_of(const CLI::Option& option) {
  CommandFlag flag;
  flag.positional = option.get_positional();
  flag.name = flag.positional ? option.get_single_name() : "--" + option.get_lnames().front();
  // A switch takes no value.
  if (option.get_type_size() != 0)
    flag.value = option.get_type_name().empty() ? "VALUE" : option.get_type_name();
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
