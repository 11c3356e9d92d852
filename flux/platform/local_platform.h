// LocalPlatform: the processes of a job as children of this one.
//
// Each leads a process group of its own, so that a Ctrl-C at the terminal reaches only the
// supervisor, which forwards it; and each is told by the kernel to die when the supervisor dies,
// however that happens, so that nothing is left over. `host` of a spec is not looked at.
// Threads: one owner, and start() always on the same thread: the kernel ties "parent died" to the
// thread that started a child.
#pragma once

#include <map>

#include "flux/platform/platform.h"

namespace flux {

class LocalPlatform final : public Platform {
 public:
  LocalPlatform() = default;
  ~LocalPlatform() override;
  LocalPlatform(const LocalPlatform&) = delete;
  LocalPlatform& operator=(const LocalPlatform&) = delete;

  Result<ProcessId> start(const ProcessSpec& spec) override;
  void ask_to_stop(ProcessId id) override;
  void kill(ProcessId id) override;
  std::vector<ProcessEnd> ended() override;
  std::vector<ProcessInfo> running() const override;

 private:
  void signal(ProcessId id, int number);
  void close_leash(ProcessId id);
  ProcessId last_ = 0;
  std::map<ProcessId, int> leashes_;  // writing ends
  std::map<ProcessId, ProcessInfo> children_;
};

}  // namespace flux
