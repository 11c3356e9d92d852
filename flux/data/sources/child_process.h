// ChildProcess: a command that reads a file and whose output is read from here.
//
// Started from an argument vector, never by a shell, as the leader of a process group of its own. A
// thread of its own starts it and waits for its end, so that the kernel kills it when this process
// dies, however that happens, and nothing stays behind as a zombie.
// Threads: one user at a time. Ownership: the destructor kills the group and waits.
// Failure: kInvalid that names the command: it is not found, or cannot be run.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "flux/base/status.h"

namespace flux {

struct ChildEnd {
  int code = 0;    // exit code, if signal is 0
  int signal = 0;  // that killed it
};

class ChildProcess {
 public:
  // `input`: path of the file that becomes its standard input.
  static Result<std::unique_ptr<ChildProcess>> start(const std::vector<std::string>& command,
                                                     const std::string& input);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Reading ends, which do not block; -1 once closed.
  int output() const { return output_; }
  int errors() const { return errors_; }
  void close_errors();
  void kill();  // the group; more than once is allowed
  // How it ended; false: it still runs after `timeout`.
  bool wait(std::chrono::milliseconds timeout, ChildEnd* ended);
  // Bytes of the file that it has read.
  uint64_t input_offset() const;

 private:
  ChildProcess() = default;
  int input_ = -1, output_ = -1, errors_ = -1;
  int pid_ = -1;
  std::shared_future<ChildEnd> end_;
  std::thread keeper_;
};

}  // namespace flux
