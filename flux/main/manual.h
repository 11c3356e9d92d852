// Man pages of `flux` and of each command, from the table of commands; `flux man run | man -l -`.
// Pure. Failure: kInvalid for a command that is not there.
#pragma once

#include <span>
#include <string>

#include "flux/base/status.h"
#include "flux/main/command_table.h"

namespace flux {

// `command`: "run", "data gen criteo"; empty: flux itself. One with commands below lists them.
Result<std::string> man_page(const std::string& command, const std::string& version,
                             std::span<const CommandEntry> table);

}  // namespace flux
