// What a command writes must be none of the files that it reads, by whatever name.
// Pure but for stat(); any thread. Failure: kInvalid that names both.
#pragma once

#include <span>
#include <string>

#include "flux/base/status.h"

namespace flux {

Status not_an_input(const std::string& out, std::span<const std::string> inputs);

}  // namespace flux
