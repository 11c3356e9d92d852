#include "flux/platform/local_platform.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flux {
namespace {

constexpr int kFirstOther = 3;  // descriptors above standard error
constexpr char kStopLine[] = "stop\n";
constexpr size_t kInputMax = 4096;  // a pipe takes so much at once

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int number) : fd(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void close() {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
};

// /dev/null, or the reading end of a leash.
Status open_input(const ProcessSpec& spec, Descriptor* input, Descriptor* leash) {
  if (!spec.leash) {
    input->fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return input->fd < 0 ? errno_status("cannot open /dev/null", errno) : Status::ok();
  }
  if (spec.input.size() > kInputMax)
    return invalid("{}: an input of {} bytes, at most {}", spec.name, spec.input.size(), kInputMax);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status("cannot make a pipe", errno);
  input->fd = ends[0];
  leash->fd = ends[1];
  const ssize_t n = ::write(leash->fd, spec.input.data(), spec.input.size());
  if (n != static_cast<ssize_t>(spec.input.size()))
    return errno_status("cannot write a pipe", errno);
  ::fcntl(leash->fd, F_SETFL, O_NONBLOCK);
  return Status::ok();
}

// Everything that the child needs is made before the fork: between fork and exec only calls that
// are safe in a signal handler may be made.
struct Plan {
  std::vector<char*> arguments;
  int input = -1;   // becomes standard input
  int output = -1;  // becomes standard output and error; -1: inherited
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
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up();
  if (::getppid() != plan.parent) _exit(127);  // died in between: nobody would tell us
  if (::setpgid(0, 0) != 0) give_up();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  if (::dup2(plan.input, STDIN_FILENO) < 0) give_up();
  if (plan.output >= 0 &&
      (::dup2(plan.output, STDOUT_FILENO) < 0 || ::dup2(plan.output, STDERR_FILENO) < 0))
    give_up();
  ::syscall(SYS_close_range, kFirstOther, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv(plan.arguments[0], plan.arguments.data());
  give_up();
  _exit(127);
}

}  // namespace

std::string ProcessEnd::text() const {
  if (signal == 0) return fmt::format("exit code {}", code);
  return fmt::format("killed by signal {} ({})", signal, ::strsignal(signal));
}

LocalPlatform::~LocalPlatform() {
  for (const auto& [id, fd] : leashes_) ::close(fd);
  for (const auto& [id, child] : children_) ::kill(static_cast<pid_t>(child.pid), SIGKILL);
  for (const auto& [id, child] : children_)
    while (::waitpid(static_cast<pid_t>(child.pid), nullptr, 0) < 0 && errno == EINTR) {
    }
}

Result<ProcessId> LocalPlatform::start(const ProcessSpec& spec) {
  if (spec.arguments.empty()) return invalid("{}: no program to start", spec.name);
  std::vector<std::string> words = spec.arguments;
  Plan plan;
  for (std::string& word : words) plan.arguments.push_back(word.data());
  plan.arguments.push_back(nullptr);
  plan.parent = ::getpid();

  Descriptor input(-1), leash(-1);
  FLUX_RETURN_IF_ERROR(open_input(spec, &input, &leash));
  plan.input = input.fd;
  Descriptor output(-1);
  if (!spec.log.empty()) {
    output.fd = ::open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (output.fd < 0) return errno_status("cannot open " + spec.log, errno);
    plan.output = output.fd;
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status("cannot make a pipe", errno);
  Descriptor from_child(ends[0]), to_parent(ends[1]);
  plan.report = to_parent.fd;

  const pid_t pid = ::fork();
  if (pid < 0) return errno_status("cannot start " + spec.name, errno);
  if (pid == 0) run_child(plan);
  to_parent.close();
  int reason = 0;
  ssize_t n = 0;
  do n = ::read(from_child.fd, &reason, sizeof reason);
  while (n < 0 && errno == EINTR);
  if (n == sizeof reason) {
    ::waitpid(pid, nullptr, 0);
    return errno_status("cannot start " + words[0], reason);
  }
  ++last_;  // on its own: the right side of an assignment comes before the left
  children_[last_] = {last_, spec.name, pid};
  if (leash.fd >= 0) leashes_[last_] = std::exchange(leash.fd, -1);
  return last_;
}

void LocalPlatform::close_leash(ProcessId id) {
  const auto leash = leashes_.find(id);
  if (leash == leashes_.end()) return;
  ::close(leash->second);
  leashes_.erase(leash);
}

void LocalPlatform::signal(ProcessId id, int number) {
  const auto found = children_.find(id);
  // A child that has ended but was not waited for keeps its number, so this hits nobody else.
  if (found != children_.end()) ::kill(static_cast<pid_t>(found->second.pid), number);
}

void LocalPlatform::ask_to_stop(ProcessId id) {
  const auto leash = leashes_.find(id);
  if (leash == leashes_.end()) return signal(id, SIGTERM);
  // A pipe that is full belongs to somebody who reads nothing: it is killed in the end.
  const ssize_t ignored = ::write(leash->second, kStopLine, sizeof kStopLine - 1);
  (void)ignored;
}

void LocalPlatform::kill(ProcessId id) {
  signal(id, SIGKILL);
}

std::vector<ProcessEnd> LocalPlatform::ended() {
  std::vector<ProcessEnd> ends;
  for (auto child = children_.begin(); child != children_.end();) {
    int state = 0;
    struct rusage usage {};
    const pid_t pid = ::wait4(static_cast<pid_t>(child->second.pid), &state, WNOHANG, &usage);
    if (pid == 0 || (pid < 0 && errno == EINTR)) {
      ++child;
      continue;
    }
    ProcessEnd end;
    end.id = child->first;
    end.name = child->second.name;
    end.pid = child->second.pid;
    if (pid > 0 && WIFEXITED(state)) end.code = WEXITSTATUS(state);
    if (pid > 0 && WIFSIGNALED(state)) end.signal = WTERMSIG(state);
    if (pid > 0) end.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    close_leash(end.id);
    ends.push_back(std::move(end));
    child = children_.erase(child);
  }
  return ends;
}

std::vector<ProcessInfo> LocalPlatform::running() const {
  std::vector<ProcessInfo> infos;
  for (const auto& [id, child] : children_) infos.push_back(child);
  return infos;
}

}  // namespace flux
