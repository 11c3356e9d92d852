// Shell completion of `flux` for bash, zsh and fish, from the table of commands. Pure.
// Failure: kInvalid for another shell.
#pragma once

#include <span>
#include <string>

#include "flux/base/status.h"
#include "flux/main/command_table.h"

namespace flux {

Result<std::string> completion_script(const std::string& shell,
                                      std::span<const CommandEntry> table);

}  // namespace flux
