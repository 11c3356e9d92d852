#include "flux/data/sources/child_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flux {
namespace {

constexpr int kFirstOther = 3;  // descriptors above standard error

struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void close() {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
  int release() { return std::exchange(fd, -1); }
};

struct Pipe {
  Descriptor read, write;
  Status open() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status("cannot make a pipe", errno);
    read.fd = ends[0];
    write.fd = ends[1];
    return Status::ok();
  }
};

// Why a program could not be started, for a person.
Status cannot_start(const std::string& program, int reason) {
  const bool path = program.find('/') != std::string::npos;
  if (reason == ENOENT)
    return invalid("data.pipe: the command '{}' is not found{}", program,
                   path ? "; check the path" : " in PATH; install it, or give its path");
  if (reason == EACCES)
    return invalid("data.pipe: '{}' is no program that can be run; check the path and its mode",
                   program);
  return invalid("data.pipe: '{}' cannot be run: {}", program, std::strerror(reason));
}

// All that the child needs, made before the fork: between fork and exec only calls that are safe in
// a signal handler may be made.
struct Plan {
  std::vector<char*> arguments;  // the first is the program, looked for in PATH
  int input = -1, output = -1, errors = -1;
  int report = -1;  // takes errno if the program cannot be started
  pid_t parent = 0;
};

[[noreturn]] void run_child(const Plan& plan) {
  const auto give_up = [&] {
    const int reason = errno;
    const ssize_t ignored = ::write(plan.report, &reason, sizeof reason);
    (void)ignored;
    _exit(127);
  };
  if (::setpgid(0, 0) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up();
  if (::getppid() != plan.parent) _exit(127);  // died in between: nobody would tell us
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  if (::dup2(plan.input, STDIN_FILENO) < 0 || ::dup2(plan.output, STDOUT_FILENO) < 0 ||
      ::dup2(plan.errors, STDERR_FILENO) < 0)
    give_up();
  ::syscall(SYS_close_range, kFirstOther, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execvp(plan.arguments[0], plan.arguments.data());
  give_up();
  _exit(127);
}

// Its number stays taken until somebody reaps it, so that its group can be killed safely.
ChildEnd wait_for(pid_t pid) {
  siginfo_t info = {};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0)
    if (errno != EINTR) return {};
  return info.si_code == CLD_EXITED ? ChildEnd{info.si_status, 0} : ChildEnd{0, info.si_status};
}

// 0, or the errno for which the child could not begin.
int read_report(int fd) {
  int reason = 0;
  ssize_t n = 0;
  while ((n = ::read(fd, &reason, sizeof reason)) < 0 && errno == EINTR) {
  }
  return n == sizeof reason ? reason : 0;
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::vector<std::string>& command,
                                                          const std::string& input) {
  FLUX_CHECK(!command.empty(), "a command without a program");
  Plan plan;
  std::vector<std::string> words = command;
  for (std::string& word : words) plan.arguments.push_back(word.data());
  plan.arguments.push_back(nullptr);
  plan.parent = ::getpid();
  Descriptor file;
  file.fd = ::open(input.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.fd < 0) return errno_status("cannot open " + input, errno);
  Pipe output, errors, report;
  for (Pipe* pipe : {&output, &errors, &report}) FLUX_RETURN_IF_ERROR(pipe->open());
  plan.input = file.fd;
  plan.output = output.write.fd;
  plan.errors = errors.write.fd;
  plan.report = report.write.fd;

  std::unique_ptr<ChildProcess> out(new ChildProcess);
  std::promise<pid_t> started;
  std::promise<ChildEnd> ended;
  std::future<pid_t> pid_known = started.get_future();
  out->end_ = ended.get_future().share();
  // The kernel ties "parent died" to the thread that forked: it has to outlive the child.
  out->keeper_ =
      std::thread([&plan, started = std::move(started), ended = std::move(ended)]() mutable {
        const pid_t pid = ::fork();
        if (pid == 0) run_child(plan);
        started.set_value(pid < 0 ? -errno : pid);
        ended.set_value(pid < 0 ? ChildEnd{} : wait_for(pid));
      });
  const pid_t pid = pid_known.get();
  if (pid < 0) return errno_status("cannot start " + command[0], -pid);
  out->pid_ = pid;
  ::setpgid(pid, pid);  // so does the child; whoever is first
  report.write.close();
  if (const int reason = read_report(report.read.fd); reason != 0)
    return cannot_start(command[0], reason);
  out->input_ = file.release();
  out->output_ = output.read.release();
  out->errors_ = errors.read.release();
  ::fcntl(out->output_, F_SETFL, O_NONBLOCK);
  ::fcntl(out->errors_, F_SETFL, O_NONBLOCK);
  return out;
}

ChildProcess::~ChildProcess() {
  kill();
  if (keeper_.joinable()) keeper_.join();
  if (pid_ > 0)
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  for (const int fd : {input_, output_, errors_})
    if (fd >= 0) ::close(fd);
}

void ChildProcess::close_errors() {
  if (errors_ >= 0) ::close(std::exchange(errors_, -1));
}

void ChildProcess::kill() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

uint64_t ChildProcess::input_offset() const {
  const off_t at = ::lseek(input_, 0, SEEK_CUR);
  return at < 0 ? 0 : static_cast<uint64_t>(at);
}

bool ChildProcess::wait(std::chrono::milliseconds timeout, ChildEnd* ended) {
  if (end_.wait_for(timeout) != std::future_status::ready) return false;
  *ended = end_.get();
  return true;
}

}  // namespace flux
