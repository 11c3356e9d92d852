// flux sim --train: how good a job's model gets when its gradients are so many batches old.
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "flux/base/text.h"
#include "flux/main/checked_job.h"
#include "flux/main/commands.h"
#include "flux/main/replay.h"
#include "flux/main/replay_report.h"
#include "flux/main/stop_signal.h"
#include "flux/main/worker_setup.h"

namespace flux {
namespace {

constexpr uint32_t kStalenessMax = 1U << 20;

// "0,16,64", sorted; 0 is always among them, since drops are against it.
Result<std::vector<uint32_t>> parse_staleness(const std::string& text) {
  std::vector<uint32_t> out = {0};
  for (const std::string& word : split(text, ',')) {
    uint32_t value = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failed != std::errc() || end != word.data() + word.size() || value > kStalenessMax)
      return invalid("--staleness {}: '{}' is no number from 0 to {}; give one or several: 0,16,64",
                     text, word, kStalenessMax);
    out.push_back(value);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<RoleJob> open_job(const ReplayArguments& arguments) {
  JobArguments job = arguments.job;
  if (arguments.examples_per_push > 0)
    job.sets.push_back(fmt::format("data.batch={}", arguments.examples_per_push));
  if (!arguments.seed.empty()) job.sets.push_back("seed=" + arguments.seed);
  FLUX_ASSIGN_OR_RETURN(Job checked, load_checked_job(job));
  return open_role_job(std::move(checked));
}

Result<ReplaySetting> setting_of(const ReplayArguments& arguments, const Job& job) {
  ReplaySetting setting;
  setting.job = job.name;
  setting.seed = job.seed;
  setting.batch = job.data.batch_size;
  setting.threshold = arguments.threshold;
  FLUX_ASSIGN_OR_RETURN(const Precision precision, choose_precision(job.precision));
  setting.precision = precision_name(precision);
  FLUX_ASSIGN_OR_RETURN(const WireValue wire, wire_value(job.wire));
  setting.value_bytes = wire == WireValue::kFp32 ? 4 : 2;
  return setting;
}

Status replay_all(const ReplayArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const auto ages, parse_staleness(arguments.staleness));
  FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_job(arguments));
  FLUX_ASSIGN_OR_RETURN(const ReplaySetting setting, setting_of(arguments, role.job));
  ReplayOptions options;
  options.rows_power = arguments.rows_power;
  options.dense_power = arguments.dense_power;
  options.compensation = arguments.compensation;
  options.memory_max = static_cast<uint64_t>(arguments.memory_gb * (1ULL << 30));
  options.stop = install_stop_signal();
  FLUX_ASSIGN_OR_RETURN(const ReplayData data, open_replay_data(role.job, options.stop));
  std::vector<ReplayResult> results;
  for (const uint32_t age : ages) {
    options.staleness = age;
    FLUX_ASSIGN_OR_RETURN(ReplayResult result, replay(role, data, options));
    results.push_back(std::move(result));
  }
  std::fputs((arguments.json ? replay_json : replay_text)(setting, results).c_str(), stdout);
  return Status::ok();
}

}  // namespace

int replay_command(const ReplayArguments& arguments) {
  const Status status = replay_all(arguments);
  return status.is_ok() ? 0 : report(status);
}

}  // namespace flux
