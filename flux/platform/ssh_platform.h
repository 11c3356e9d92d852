// SshPlatform: processes on other hosts, over `ssh`; those of "localhost" as children of this one.
//
// A process of another host is a child here too: the ssh client that runs it. It is on a leash
// (platform.h): its standard input carries what must not be on a command line, then stays open, and
// whoever runs there ends when it closes. So nothing outlives this process there either. Its output
// comes back through ssh into the log.
// The command passes through the shell of the other host: every word is quoted. If it was killed
// while that host's kernel has killed somebody for memory, the shell adds kKernelKilled to the log.
// Threads: as LocalPlatform. Failure: Status; a host that ssh cannot reach, or loses, is told as
// ProcessEnd::host_lost.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "flux/platform/local_platform.h"
#include "flux/platform/platform.h"

namespace flux {

constexpr const char* kKernelKilled =
    "flux: killed, and the kernel has killed for memory meanwhile";

class SshPlatform final : public Platform {
 public:
  // `ssh`: path of the program. `counters` of the other hosts' kernels: another file only in tests.
  explicit SshPlatform(std::string ssh, std::string counters = "/proc/vmstat")
      : ssh_(std::move(ssh)), counters_(std::move(counters)) {}

  Result<ProcessId> start(const ProcessSpec& spec) override;
  void ask_to_stop(ProcessId id) override { local_.ask_to_stop(id); }
  // The ssh client is killed; its end closes the leash.
  void kill(ProcessId id) override { local_.kill(id); }
  std::vector<ProcessEnd> ended() override;
  std::vector<ProcessInfo> running() const override { return local_.running(); }

 private:
  std::string command(const ProcessSpec& spec) const;

  const std::string ssh_, counters_;
  LocalPlatform local_;
  std::set<ProcessId> remote_;
};

bool is_local_host(const std::string& host);
// One word for a shell.
std::string shell_word(const std::string& word);

}  // namespace flux
