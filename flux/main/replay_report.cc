#include "flux/main/replay_report.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "flux/base/text.h"
#include "flux/main/metric_json.h"

namespace flux {
namespace {

constexpr double kLinkBytes = 25e9 / 8;  // a second

double auc_of(const ReplayResult& result) {
  const MetricValues* whole = result.whole();
  return whole != nullptr ? whole->auc.value_or(0.5) : 0.5;
}

// Workers of one batch each, so that a batch meets the pushes of all the others.
uint32_t workers_of(const ReplayResult& result) {
  return result.staleness + 1;
}

std::string row_text(const ReplaySetting& setting, const ReplayResult& base,
                     const ReplayResult& result, double pushes) {
  const MetricValues* whole = result.whole();
  std::string loss = "-";
  if (whole != nullptr && whole->log_loss) loss = fmt::format("{:.5f}", *whole->log_loss);
  std::string line = fmt::format(
      "{:>7} {:>9} {:>12} {:>9} {:>9.5f} {:>9} {:>8} {:>12}\n", result.staleness,
      workers_of(result), with_commas(uint64_t{result.staleness} * setting.batch),
      whole != nullptr ? fmt::format("{:.5f}", auc_of(result)) : "diverged", auc_drop(base, result),
      loss, with_commas(result.refused), with_commas(static_cast<uint64_t>(pushes)));
  if (!result.diverged.empty()) line += "        " + result.diverged + "\n";
  return line;
}

std::string traffic_text(const ReplaySetting& setting, const ReplayTraffic& traffic) {
  const auto keys = static_cast<uint64_t>(std::llround(traffic.keys));
  const auto floats = static_cast<uint64_t>(std::llround(traffic.floats));
  const double bytes = traffic.bytes(setting.value_bytes);
  const double rate = batches_per_link(setting, traffic);
  std::string text = fmt::format(
      "a batch moves {}: {} keys of 8 bytes up and {} values of {} bytes down (rows {}, dense {}), "
      "then keys with counts of 12 and as many values up\n",
      human_bytes(static_cast<uint64_t>(bytes)), with_commas(keys),
      with_commas(floats + traffic.dense), setting.value_bytes, with_commas(floats),
      with_commas(traffic.dense));
  text += fmt::format(
      "25 Gbit/s carry {:.3g} bytes/s / {:.3g} = {} batches or {} examples a second of each "
      "worker; "
      "with as many servers as workers each server moves {:.3g} GB/s and takes a push of every "
      "worker's every batch (last column)\n",
      kLinkBytes, bytes, with_commas(static_cast<uint64_t>(rate)),
      with_commas(static_cast<uint64_t>(rate * setting.batch)), kLinkBytes * 1e-9);
  return text;
}

}  // namespace

double auc_drop(const ReplayResult& base, const ReplayResult& result) {
  return auc_of(base) - auc_of(result);
}

double batches_per_link(const ReplaySetting& setting, const ReplayTraffic& traffic) {
  return kLinkBytes / traffic.bytes(setting.value_bytes);
}

std::optional<double> quality_falls_from(std::span<const ReplayResult> results, double threshold) {
  for (size_t i = 1; i < results.size(); ++i) {
    const double drop = auc_drop(results[0], results[i]);
    if (drop <= threshold) continue;
    const double before = auc_drop(results[0], results[i - 1]);
    const double from = workers_of(results[i - 1]), to = workers_of(results[i]);
    return from + (to - from) * (threshold - before) / (drop - before);
  }
  return std::nullopt;
}

std::string replay_text(const ReplaySetting& setting, std::span<const ReplayResult> results) {
  const ReplayResult& base = results[0];
  std::string text = fmt::format(
      "job {}: {} examples in batches of {}, seed {}, {}, on one core\n"
      "    age   workers     examples       AUC      drop  log loss  refused  pushes/s per "
      "server\n",
      setting.job, with_commas(base.examples), with_commas(setting.batch), setting.seed,
      setting.precision);
  const double rate = batches_per_link(setting, base.traffic);
  for (const ReplayResult& result : results)
    text += row_text(setting, base, result, rate * workers_of(result));
  text +=
      "age: batches applied between the pull of a batch and its push; so many workers of one batch "
      "each make it\n";
  text += traffic_text(setting, base.traffic);
  const auto from = quality_falls_from(results, setting.threshold);
  if (results.size() > 1 && from && *from < 2)
    text += fmt::format(
        "quality falls somewhere below {} workers: try ages between, such as --staleness "
        "0,1,2,4\n",
        workers_of(results[1]));
  else if (results.size() > 1 && from)
    text += fmt::format("quality falls from about {:.0f} workers: there the AUC is {} lower\n",
                        *from, setting.threshold);
  else if (results.size() > 1)
    text += fmt::format("quality holds for up to {} workers: no drop of the AUC exceeds {}\n",
                        workers_of(results.back()), setting.threshold);
  return text;
}

std::string replay_json(const ReplaySetting& setting, std::span<const ReplayResult> results) {
  const ReplayTraffic& traffic = results[0].traffic;
  const double rate = batches_per_link(setting, traffic);
  nlohmann::ordered_json out = {{"job", setting.job},
                                {"seed", setting.seed},
                                {"precision", setting.precision},
                                {"examples_per_push", setting.batch},
                                {"threshold", setting.threshold}};
  const auto from = quality_falls_from(results, setting.threshold);
  out["quality_falls_from_workers"] = nullptr;
  if (from) out["quality_falls_from_workers"] = *from;
  out["batch"] = {{"keys", traffic.keys},
                  {"row_values", traffic.floats},
                  {"dense_values", traffic.dense},
                  {"value_bytes", setting.value_bytes},
                  {"bytes", traffic.bytes(setting.value_bytes)},
                  {"per_second_at_25_gbit", rate}};
  for (const ReplayResult& result : results) {
    nlohmann::ordered_json one = {{"staleness", result.staleness},
                                  {"workers", workers_of(result)},
                                  {"age_examples", uint64_t{result.staleness} * setting.batch},
                                  {"examples", result.examples},
                                  {"batches", result.batches},
                                  {"refused", result.refused},
                                  {"auc_drop", auc_drop(results[0], result)},
                                  {"pushes_per_s_per_server", rate * workers_of(result)},
                                  {"bytes_per_s_per_server", kLinkBytes},
                                  {"model_hash", fmt::format("{:016x}", result.model_hash)},
                                  {"seconds", result.seconds}};
    one["diverged"] = nullptr;
    if (!result.diverged.empty()) one["diverged"] = result.diverged;
    one["test"] = nullptr;
    if (result.diverged.empty()) one["test"] = metrics_json(result.test);
    out["replays"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

}  // namespace flux
