// The names of the ready-made jobs that the build puts into the binary, for messages and the shell.
// Pure.
#pragma once

#include <string>
#include <vector>

namespace flux {

std::vector<std::string> ready_model_names();

}  // namespace flux
