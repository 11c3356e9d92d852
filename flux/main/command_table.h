// The commands of `flux` as one plain table: names, flags, sentences.
//
// It is read off the parser itself, so help, shell completion, man pages and what is accepted can
// never differ. Hidden flags are left out. Pure.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace flux {

struct CommandFlag {
  std::string name;   // "--set"; of a positional argument: "job"
  std::string value;  // what it takes: "TEXT", "FIELD=VALUE"; empty: nothing, it is a switch
  std::string sentence;
  bool positional = false;
  bool required = false;
  bool repeated = false;     // may be given several times
  std::string allowed = "";  // of numbers: "0 to 1024"; empty: all
};

struct CommandEntry {
  std::vector<std::string> path;  // {"run"}, {"data", "gen", "criteo"}
  std::string sentence;
  std::vector<CommandFlag> flags;
  std::vector<std::string> below;  // names of sub-commands
};

// The first entry, with an empty path, is `flux` itself; then all commands, each before its own.
std::vector<CommandEntry> command_table(const CLI::App& app);

}  // namespace flux
