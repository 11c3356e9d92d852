#include "flux/main/leash.h"

#include <cerrno>
#include <csignal>
#include <thread>

#include <poll.h>
#include <unistd.h>

namespace flux {
namespace {

constexpr int kSecretWaitMs = 10'000;
constexpr size_t kLineMax = 4096;
constexpr int kLeashEnded = 1;

// False: no more comes.
bool read_byte(char* out) {
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, out, 1);
    if (n == 1) return true;
    if (n < 0 && errno == EINTR) continue;
    return false;
  }
}

bool read_line(std::string* line) {
  line->clear();
  for (char c = 0; read_byte(&c);) {
    if (c == '\n') return true;
    if (line->size() < kLineMax) *line += c;
  }
  return false;
}

void obey() {
  std::string line;
  while (read_line(&line))
    if (line == "stop") ::kill(::getpid(), SIGTERM);
  _exit(kLeashEnded);
}

}  // namespace

Result<std::string> take_leash() {
  struct pollfd input {
    STDIN_FILENO, POLLIN, 0
  };
  std::string secret;
  if (::poll(&input, 1, kSecretWaitMs) != 1 || !read_line(&secret) || secret.size() < 16)
    return invalid("--token-stdin: no secret of at least 16 characters came within {} s",
                   kSecretWaitMs / 1000);
  std::thread(obey).detach();
  return secret;
}

}  // namespace flux
