// Ctrl-C, SIGTERM and SIGHUP: the first asks for a clean stop (checkpoint, then exit), the second
// ends the process at once. Process-wide by nature; installed once by a command that trains.
#pragma once

#include <atomic>

namespace flux {

// The flag that turns true with the first signal.
const std::atomic<bool>* install_stop_signal();

}  // namespace flux
