#include "flux/main/completion.h"

#include <fmt/format.h>

#include "flux/base/text.h"

namespace flux {
namespace {

// Inside single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + out + "'";
}

// The words that a flag takes, of "newest|best|NUMBER"; what is in capitals stands for others.
std::vector<std::string> choices_of(const CommandFlag& flag) {
  std::vector<std::string> out;
  if (flag.value.find('|') == std::string::npos) return out;
  for (std::string& word : split(flag.value, '|'))
    if (!word.empty() && !(word[0] >= 'A' && word[0] <= 'Z')) out.push_back(std::move(word));
  return out;
}

// What may follow a command: its sub-commands, what its arguments may be, and flags.
std::vector<std::string> words_of(const CommandEntry& entry) {
  std::vector<std::string> words = entry.below;
  for (const CommandFlag& flag : entry.flags) {
    if (!flag.positional) words.push_back(flag.name);
    if (flag.positional)
      for (std::string& word : choices_of(flag)) words.push_back(std::move(word));
  }
  return words;
}

// Every path of commands as a shell pattern: " run"|" data"|" data gen".
std::string paths_pattern(std::span<const CommandEntry> table) {
  std::vector<std::string> paths;
  for (const CommandEntry& entry : table)
    if (!entry.path.empty()) paths.push_back(quoted(" " + join(entry.path, " ")));
  return join(paths, "|");
}

std::string path_text(const CommandEntry& entry) {
  return entry.path.empty() ? "" : " " + join(entry.path, " ");
}

// A case for each flag with choices, of the commands and the word before: `begin` and `middle` are
// what the shell wants around the list.
std::string flag_cases(std::span<const CommandEntry> table, const char* begin, const char* middle,
                       const char* end) {
  std::string cases;
  for (const CommandEntry& entry : table)
    for (const CommandFlag& flag : entry.flags)
      if (const auto words = choices_of(flag); !flag.positional && !words.empty())
        cases += fmt::format("    {}{}{}{}{}\n", begin, quoted(path_text(entry) + " " + flag.name),
                             middle, join(words, " "), end);
  return cases;
}

std::string bash_script(std::span<const CommandEntry> table) {
  std::string cases;
  for (const CommandEntry& entry : table)
    cases += fmt::format("    {}) list={} ;;\n", quoted(path_text(entry)),
                         quoted(join(words_of(entry), " ")));
  return fmt::format(R"(# bash completion of flux: source <(flux completion bash)
_flux() {{
  local at='' word list=''
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$at $word" in
      {}) at="$at $word" ;;
    esac
  done
  case "$at" in
{}  esac
  case "$at ${{COMP_WORDS[COMP_CWORD-1]}}" in
{}  esac
  COMPREPLY=($(compgen -W "$list" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _flux flux
)",
                     paths_pattern(table), cases, flag_cases(table, "", ") list='", "' ;;"));
}

std::string zsh_items(const CommandEntry& entry, std::span<const CommandEntry> table) {
  const auto item = [](const std::string& name, const std::string& sentence) {
    std::string text;
    for (const char c : sentence) text += c == ':' ? std::string("\\:") : std::string(1, c);
    return quoted(name + ":" + text) + " ";
  };
  std::string out;
  for (const CommandEntry& below : table)
    if (below.path.size() == entry.path.size() + 1 &&
        std::equal(entry.path.begin(), entry.path.end(), below.path.begin()))
      out += item(below.path.back(), below.sentence);
  for (const CommandFlag& flag : entry.flags)
    if (!flag.positional) out += item(flag.name, flag.sentence);
  for (const CommandFlag& flag : entry.flags)
    if (flag.positional)
      for (const std::string& word : choices_of(flag)) out += item(word, flag.sentence);
  return out;
}

std::string zsh_script(std::span<const CommandEntry> table) {
  std::string cases;
  for (const CommandEntry& entry : table)
    cases +=
        fmt::format("    ({}) items=({}) ;;\n", quoted(path_text(entry)), zsh_items(entry, table));
  return fmt::format(R"(#compdef flux
# zsh completion of flux: source <(flux completion zsh)
_flux() {{
  local at='' word
  local -a items
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$at $word" in
      ({}) at="$at $word" ;;
    esac
  done
  case "$at" in
{}  esac
  case "$at ${{words[CURRENT-1]}}" in
{}  esac
  _describe 'flux' items
  _files
}}
compdef _flux flux
)",
                     paths_pattern(table), cases, flag_cases(table, "(", ") items=(", ") ;;"));
}

// True after just these commands: fish's own test for each, none of those below yet.
std::string fish_condition(const CommandEntry& entry) {
  if (entry.path.empty()) return "__fish_use_subcommand";
  std::vector<std::string> tests;
  for (const std::string& name : entry.path) tests.push_back("__fish_seen_subcommand_from " + name);
  if (!entry.below.empty())
    tests.push_back("not __fish_seen_subcommand_from " + join(entry.below, " "));
  return join(tests, "; and ");
}

std::string fish_script(std::span<const CommandEntry> table) {
  std::string out = "# fish completion of flux: flux completion fish | source\n";
  for (const CommandEntry& entry : table) {
    if (!entry.path.empty()) {
      CommandEntry above = entry;
      above.path.pop_back();
      above.below = {entry.path.back()};
      out += fmt::format("complete -c flux -n {} -f -a {} -d {}\n", quoted(fish_condition(above)),
                         entry.path.back(), quoted(entry.sentence));
    }
    for (const CommandFlag& flag : entry.flags) {
      const std::string choices = join(choices_of(flag), " ");
      const std::string some = choices.empty() ? "" : " -a " + quoted(choices);
      const std::string name = flag.positional ? "" : " -l " + flag.name.substr(2);
      if (!flag.positional || !choices.empty())
        out += fmt::format("complete -c flux -n {}{}{}{} -d {}\n", quoted(fish_condition(entry)),
                           name, flag.positional || flag.value.empty() ? "" : " -r", some,
                           quoted(flag.sentence));
    }
  }
  return out;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell,
                                      std::span<const CommandEntry> table) {
  if (shell == "bash") return bash_script(table);
  if (shell == "zsh") return zsh_script(table);
  if (shell == "fish") return fish_script(table);
  const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return invalid("no completion for '{}': there are {}{}", shell, join(shells, ", "),
                 did_you_mean(shell, shells));
}

}  // namespace flux
