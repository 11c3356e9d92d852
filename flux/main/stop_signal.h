// Ctrl-C, SIGTERM and SIGHUP: the first asks for a clean stop (checkpoint, then exit), the second
// ends the process at once. Signals within half a second of the first are the same wish: timeout(1)
// and service managers send one to the process and again to its group.
// Process-wide by nature; installed once by a command that trains.
#pragma once

#include <atomic>

namespace flux {

// The flag that turns true with the first signal. `announce`: say on standard error that it came;
// not for a process whose starter says so already.
const std::atomic<bool>* install_stop_signal(bool announce = true);

}  // namespace flux
