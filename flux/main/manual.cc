#include "flux/main/manual.h"

#include <algorithm>

#include <fmt/format.h>

#include "flux/base/text.h"

namespace flux {
namespace {

// Text of a page: a backslash, a hyphen and a dot at the begin mean something to troff.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\n')
      out += "\n.br\n";
    else
      out += c;
  }
  const bool control = !out.empty() && (out[0] == '.' || out[0] == '\'');
  return (control ? "\\&" : "") + out;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string full_name(const CommandEntry& entry, const char* separator) {
  std::vector<std::string> words = {"flux"};
  words.insert(words.end(), entry.path.begin(), entry.path.end());
  return join(words, separator);
}

std::string synopsis(const CommandEntry& entry) {
  std::string out = ".B " + roff(full_name(entry, " ")) + "\n";
  if (!entry.below.empty()) out += ".I COMMAND\n";
  for (const CommandFlag& flag : entry.flags)
    if (flag.positional) {
      const std::string name = roff(upper(flag.name));
      out += flag.required ? ".I " + name + "\n" : ".RI [ " + name + " ]\n";
    } else if (flag.required) {
      out += fmt::format(".BI {} \" {}\"\n", roff(flag.name), roff(flag.value));
    }
  return out + "[\\fIOPTIONS\\fR]\n";
}

std::string option(const CommandFlag& flag) {
  std::string head = flag.positional ? "\\fI" + roff(upper(flag.name)) + "\\fR"
                                     : "\\fB" + roff(flag.name) + "\\fR";
  if (!flag.positional && !flag.value.empty()) head += " \\fI" + roff(flag.value) + "\\fR";
  std::string note;
  if (!flag.allowed.empty()) note += " From " + flag.allowed + ".";
  if (flag.required && !flag.positional) note += " Required.";
  if (flag.repeated) note += " May be given several times.";
  return fmt::format(".TP\n{}\n{}.{}\n", head, roff(flag.sentence), note);
}

// Those below `above`, at any depth, that do something themselves.
std::string commands(const CommandEntry& above, std::span<const CommandEntry> table) {
  std::string out = ".SH COMMANDS\n";
  for (const CommandEntry& entry : table) {
    const bool below = entry.path.size() > above.path.size() &&
                       std::equal(above.path.begin(), above.path.end(), entry.path.begin());
    if (below && entry.below.empty())
      out +=
          fmt::format(".TP\n\\fB{}\\fR\n{}.\n", roff(join(entry.path, " ")), roff(entry.sentence));
  }
  return out;
}

}  // namespace

Result<std::string> man_page(const std::string& command, const std::string& version,
                             std::span<const CommandEntry> table) {
  std::vector<std::string> names;
  for (const CommandEntry& entry : table) names.push_back(join(entry.path, " "));
  const auto found = std::find(names.begin(), names.end(), command);
  if (found == names.end())
    return invalid("no command '{}'{}", command, did_you_mean(command, names));
  const CommandEntry& entry = table[static_cast<size_t>(found - names.begin())];
  const std::string name = full_name(entry, "-");
  std::string out = fmt::format(".TH {} 1 \"\" \"flux {}\" \"flux\"\n", upper(name), version);
  out += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", roff(name), roff(entry.sentence),
                     synopsis(entry));
  if (!entry.below.empty()) out += commands(entry, table);
  out += ".SH OPTIONS\n";
  for (const CommandFlag& flag : entry.flags) out += option(flag);
  out +=
      ".SH EXIT STATUS\n0: done; 2: bad input; 1: anything else; 130: stopped, to be gone on "
      "with.\n";
  if (!entry.path.empty()) out += ".SH SEE ALSO\n.BR flux (1)\n";
  return out;
}

}  // namespace flux
