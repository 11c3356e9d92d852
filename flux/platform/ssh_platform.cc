#include "flux/platform/ssh_platform.h"

#include <csignal>
#include <utility>

#include <fmt/format.h>

namespace flux {
namespace {

constexpr int kSshFailed = 255;    // of ssh itself
constexpr int kSignalFirst = 129;  // what a shell says of a program that a signal killed
constexpr int kSignalLast = 128 + 64;

}  // namespace

bool is_local_host(const std::string& host) {
  return host.empty() || host == "localhost";
}

std::string shell_word(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

// The shell stays, so that it tells of signals.
std::string SshPlatform::command(const ProcessSpec& spec) const {
  std::string words;
  for (const std::string& word : spec.arguments) words += shell_word(word) + " ";
  const std::string kills =
      fmt::format("\"$(grep '^oom_kill ' {} 2>/dev/null)\"", shell_word(counters_));
  return fmt::format(
      "before={0}; {1}; code=$?; "
      "if [ $code = {2} ] && [ \"$before\" != {0} ]; then echo '{3}'; fi; exit $code",
      kills, words, 128 + SIGKILL, kKernelKilled);
}

Result<ProcessId> SshPlatform::start(const ProcessSpec& spec) {
  if (is_local_host(spec.host)) return local_.start(spec);
  if (spec.host.starts_with('-')) return invalid("'{}' is no name of a host", spec.host);
  ProcessSpec client = spec;
  client.host.clear();
  client.leash = true;
  client.arguments = {ssh_,      "-T",
                      "-o",      "BatchMode=yes",
                      "-o",      "ConnectTimeout=5",
                      "-o",      "ServerAliveInterval=2",
                      "-o",      "ServerAliveCountMax=2",
                      spec.host, command(spec)};
  FLUX_ASSIGN_OR_RETURN(const ProcessId id, local_.start(client));
  remote_.insert(id);
  return id;
}

std::vector<ProcessEnd> SshPlatform::ended() {
  std::vector<ProcessEnd> ends = local_.ended();
  for (ProcessEnd& end : ends) {
    if (remote_.erase(end.id) == 0) continue;
    end.pid = 0;  // that of ssh, as is its memory
    end.peak_rss_bytes = 0;
    end.host_lost = end.signal == 0 && end.code == kSshFailed;
    if (end.signal == 0 && end.code >= kSignalFirst && end.code <= kSignalLast)
      end.signal = std::exchange(end.code, 0) - 128;
  }
  return ends;
}

}  // namespace flux
