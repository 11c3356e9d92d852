// A role that was started on another host hangs on its standard input (platform/ssh_platform.h).
//
// The first line is its secret, "stop" asks it to stop as SIGTERM does, and the end of the input is
// its end: whoever started it is gone. Threads: starts one that reads, for as long as the process
// lives. Failure: kInvalid if no secret comes within some seconds.
#pragma once

#include <string>

#include "flux/base/status.h"

namespace flux {

// Once per process, after the stop signal is installed.
Result<std::string> take_leash();

}  // namespace flux
