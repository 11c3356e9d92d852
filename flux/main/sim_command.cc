// flux sim: simulated clusters from seeds, for people: one run with its story, or many at once.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/text.h"
#include "flux/main/commands.h"
#include "flux/testing/cluster_sim.h"

namespace flux {
namespace {

int simulate_one(const SimArguments& arguments, ClusterBug bug) {
  const auto tell = [](TimeNs now, const std::string& line) {
    fmt::print("{:>10.3f} s  {}\n", static_cast<double>(now) * 1e-9, line);
  };
  using Tell = std::function<void(TimeNs, const std::string&)>;
  const ClusterSimResult r =
      run_cluster_sim(arguments.first, bug, arguments.verbose ? Tell(tell) : Tell());
  if (!arguments.verbose) fmt::print("{}\n", r.plan);
  fmt::print(
      "seed {}: {}; {:.1f} simulated s, {} steps, {} messages, {} crashes, {} lives of the job, {} "
      "checkpoints, {} answers of shards ({} had it before, {} refused); trace "
      "{:016x}\n",
      arguments.first, r.ok ? "good" : "FAILED: " + r.failure, r.simulated_s, r.steps, r.messages,
      r.crashes, r.lives, r.checkpoints, r.pushes, r.duplicates, r.refused, r.trace_hash);
  return r.ok ? 0 : 1;
}

int simulate_many(const SimArguments& arguments, ClusterBug bug) {
  constexpr uint64_t kFailuresMax = 20;
  constexpr TimeNs kTellEvery = 10 * kSecond;
  const TimeNs start = steady_now_ns();
  std::atomic<uint64_t> next{arguments.first}, failures{0}, done{0};
  std::mutex mutex;
  TimeNs told = start;
  const auto rate = [&] {
    return static_cast<double>(done) * 1e9 / static_cast<double>(steady_now_ns() - start + 1);
  };
  const auto work = [&] {
    for (uint64_t seed = next++; seed <= arguments.last && failures < kFailuresMax; seed = next++) {
      const ClusterSimResult result = run_cluster_sim(seed, bug);
      ++done;
      const std::lock_guard lock(mutex);
      if (!result.ok) {
        ++failures;
        fmt::print("seed {}: FAILED: {}\n  replay: flux sim --seed {} --verbose{}\n", seed,
                   result.failure, seed,
                   bug == ClusterBug::kNone ? "" : fmt::format(" --bug {}", cluster_bug_name(bug)));
      } else if (steady_now_ns() - told > kTellEvery) {
        told = steady_now_ns();
        fmt::print("{} seeds, {:.1f} a second, {} failed\n", done.load(), rate(), failures.load());
      }
      std::fflush(stdout);
    }
  };
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < (arguments.threads == 0 ? cores : arguments.threads); ++t)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  fmt::print("{} seeds, {:.1f} a second ({} an hour), {} failed\n", done.load(), rate(),
             with_commas(static_cast<uint64_t>(rate() * 3600)), failures.load());
  return failures == 0 ? 0 : 1;
}

}  // namespace

int sim_command(const SimArguments& arguments) {
  const auto bug = find_cluster_bug(arguments.bug);
  if (!bug) {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < kClusterBugs; ++i)
      names.emplace_back(cluster_bug_name(static_cast<ClusterBug>(i)));
    return report(invalid("--bug '{}' is unknown; there are {}", arguments.bug, join(names, ", ")));
  }
  if (arguments.last < arguments.first)
    return report(invalid("--seeds {}..{}: the second number is below the first", arguments.first,
                          arguments.last));
  return arguments.first == arguments.last ? simulate_one(arguments, *bug)
                                           : simulate_many(arguments, *bug);
}

}  // namespace flux
