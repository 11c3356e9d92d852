// A switch in user space for network namespaces: one TAP device in each, frames learnt by address,
// with delay and loss on every link, for kernels without a network emulator.
//
//   switch --delay-ms 10 --loss 0.01 --seed 1 NAMESPACE=ADDRESS/BITS ...
//
// Makes tap0 with that address in each namespace, prints "ready" and forwards until it is killed.
// A frame is lost with the given chance, else delivered after the delay. Lines on its input:
// "cut A B" loses every frame from port A to port B (numbered from 0), "heal" ends all cuts. A
// test's helper: no part of flux.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr size_t kFrameMax = 65536;
constexpr size_t kAddressBytes = 6;
constexpr size_t kQueueMax = 100000;  // frames on the way; more are dropped

struct Frame {
  int64_t due_ns = 0;
  size_t port = 0;
  std::string bytes;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "switch: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void set_address(const ifreq& named, const std::string& address, int bits) {
  const int control = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) fail("socket");
  const auto set = [&](unsigned long what, in_addr_t value) {
    ifreq request = named;
    auto* to = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
    to->sin_family = AF_INET;
    to->sin_addr.s_addr = value;
    if (::ioctl(control, what, &request) != 0) fail("address of tap0");
  };
  in_addr parsed{};
  if (::inet_pton(AF_INET, address.c_str(), &parsed) != 1) fail("bad address " + address);
  set(SIOCSIFADDR, parsed.s_addr);
  set(SIOCSIFNETMASK, htonl(~0U << (32 - bits)));
  ifreq up = named;
  up.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(control, SIOCSIFFLAGS, &up) != 0) fail("cannot start tap0");
  ::close(control);
}

// "name=10.78.0.1/24"
int open_port(const std::string& text) {
  const size_t equals = text.find('='), slash = text.find('/');
  if (equals == std::string::npos || slash == std::string::npos) fail("bad port " + text);
  const std::string path = "/var/run/netns/" + text.substr(0, equals);
  const int space = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || ::setns(space, CLONE_NEWNET) != 0) fail(path);
  ::close(space);
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, "tap0", IFNAMSIZ - 1);
  if (fd < 0 || ::ioctl(fd, TUNSETIFF, &request) != 0) fail("cannot make a TAP device");
  set_address(request, text.substr(equals + 1, slash - equals - 1),
              std::atoi(text.c_str() + slash + 1));
  return fd;
}

class Switch {
 public:
  Switch(std::vector<int> ports, int64_t delay_ns, double loss, uint64_t seed)
      : ports_(std::move(ports)), delay_ns_(delay_ns), loss_(loss), random_(seed) {}

  [[noreturn]] void run() {
    std::vector<pollfd> polls;
    for (const int port : ports_) polls.push_back({port, POLLIN, 0});
    polls.push_back({STDIN_FILENO, POLLIN, 0});
    for (;;) {
      deliver();
      timespec wait{};
      const int64_t left = on_the_way_.empty() ? 0 : on_the_way_.front().due_ns - now_ns();
      if (left > 0) wait = {left / 1'000'000'000, left % 1'000'000'000};
      ::ppoll(polls.data(), polls.size(), on_the_way_.empty() ? nullptr : &wait, nullptr);
      for (size_t i = 0; i < ports_.size(); ++i)
        if ((polls[i].revents & POLLIN) != 0) receive(i);
      if ((polls.back().revents & (POLLIN | POLLHUP)) != 0 && !obey()) polls.back().fd = -1;
    }
  }

 private:
  // False: nobody orders anything any more.
  bool obey() {
    char text[256];
    const ssize_t n = ::read(STDIN_FILENO, text, sizeof text);
    if (n <= 0) return false;
    orders_.append(text, static_cast<size_t>(n));
    for (size_t end = 0; (end = orders_.find('\n')) != std::string::npos;) {
      const std::string line = orders_.substr(0, end);
      orders_.erase(0, end + 1);
      size_t from = 0, to = 0;
      if (std::sscanf(line.c_str(), "cut %zu %zu", &from, &to) == 2)
        cuts_.insert({from, to});
      else
        cuts_.clear();
    }
    return true;
  }

  void receive(size_t from) {
    for (;;) {
      const ssize_t n = ::read(ports_[from], buffer_, sizeof buffer_);
      if (n < static_cast<ssize_t>(2 * kAddressBytes)) return;
      const std::string frame(buffer_, static_cast<size_t>(n));
      where_[frame.substr(kAddressBytes, kAddressBytes)] = from;
      const auto known = where_.find(frame.substr(0, kAddressBytes));
      const bool everybody = (frame[0] & 1) != 0 || known == where_.end();
      for (size_t to = 0; to < ports_.size(); ++to)
        if (to != from && (everybody || known->second == to) && !cuts_.contains({from, to}))
          send(to, frame);
    }
  }

  void send(size_t to, const std::string& frame) {
    if (chance_(random_) < loss_ || on_the_way_.size() >= kQueueMax) return;
    on_the_way_.push_back({now_ns() + delay_ns_, to, frame});  // one delay: the order stays
  }

  void deliver() {
    while (!on_the_way_.empty() && on_the_way_.front().due_ns <= now_ns()) {
      const Frame& frame = on_the_way_.front();
      const ssize_t written = ::write(ports_[frame.port], frame.bytes.data(), frame.bytes.size());
      (void)written;  // a full device loses frames, as devices do
      on_the_way_.pop_front();
    }
  }

  std::vector<int> ports_;
  int64_t delay_ns_;
  double loss_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> chance_{0, 1};
  std::map<std::string, size_t> where_;       // port of an address
  std::deque<Frame> on_the_way_;              // by the time they are due
  std::set<std::pair<size_t, size_t>> cuts_;  // from, to
  std::string orders_;                        // not read to the end of a line yet
  char buffer_[kFrameMax] = {};
};

}  // namespace

int main(int count, char** words) {
  double delay_ms = 0, loss = 0;
  uint64_t seed = 1;
  std::vector<int> ports;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const char* value = i + 1 < count ? words[i + 1] : "";
    if (word == "--delay-ms")
      delay_ms = std::atof(value), ++i;
    else if (word == "--loss")
      loss = std::atof(value), ++i;
    else if (word == "--seed")
      seed = std::strtoull(value, nullptr, 10), ++i;
    else
      ports.push_back(open_port(word));
  }
  if (ports.size() < 2) {
    std::fprintf(stderr, "switch: give at least two NAMESPACE=ADDRESS/BITS\n");
    return 2;
  }
  std::puts("ready");
  std::fflush(stdout);
  static Switch forward(std::move(ports), static_cast<int64_t>(delay_ms * 1e6), loss, seed);
  forward.run();
}
