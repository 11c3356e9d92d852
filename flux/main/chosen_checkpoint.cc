#include "flux/main/chosen_checkpoint.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "flux/base/text.h"
#include "flux/checkpoint/store.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

std::string last_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::optional<uint64_t> number_in(const std::string& text) {
  uint64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The checkpoint that best.json of the output folder names. The folder may have moved since.
std::optional<uint64_t> best_of(const Job& job) {
  const auto text = read_whole_file(join_path(job.output, "best.json"), 1 << 20);
  if (!text.is_ok()) return std::nullopt;
  const auto best = nlohmann::json::parse(text.value(), nullptr, false);
  if (!best.is_object() || !best.contains("checkpoint") || !best["checkpoint"].is_string())
    return std::nullopt;
  return number_in(last_name(best["checkpoint"].get<std::string>()));
}

// "000003, 000004 (best), 000005 (newest)".
std::string listed(const CheckpointStore& store, const std::vector<uint64_t>& numbers,
                   std::optional<uint64_t> best) {
  std::vector<std::string> names;
  for (const uint64_t number : numbers) {
    std::vector<std::string> what;
    if (best == number) what.emplace_back("best");
    if (number == numbers.back()) what.emplace_back("newest");
    names.push_back(last_name(store.path_of(number)) +
                    (what.empty() ? "" : " (" + join(what, ", ") + ")"));
  }
  return join(names, ", ");
}

}  // namespace

Result<CheckpointPlace> checkpoint_at(const std::string& folder) {
  const std::string name = last_name(folder);
  const auto number = number_in(name);
  if (name.size() < 6 || name.size() > 12 || !number)
    return invalid("{} is not named like a checkpoint (000001)", folder);
  return CheckpointPlace{parent_folder(folder), *number};
}

Result<CheckpointPlace> choose_checkpoint(const Job& job, const std::string& which) {
  const std::string folder = join_path(job.output, "checkpoints");
  const CheckpointStore store(folder);
  const auto is_there = [&](const std::string& path) {
    return path_exists(join_path(path, "manifest.json"));
  };
  std::string path = which;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.find('/') != std::string::npos && is_there(path)) return checkpoint_at(path);
  FLUX_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, store.committed());
  if (numbers.empty())
    return invalid("no checkpoint in {}; train the job first: flux run {}", folder, job.path);
  if (which.empty() || which == "newest") return CheckpointPlace{folder, numbers.back()};
  const std::optional<uint64_t> best = best_of(job);
  const std::optional<uint64_t> wanted = which == "best" ? best : number_in(which);
  if (wanted && std::find(numbers.begin(), numbers.end(), *wanted) != numbers.end())
    return CheckpointPlace{folder, *wanted};
  std::string why = "it is neither newest, best, a number, nor the folder of a checkpoint";
  if (which == "best" && !best)
    why = "the job names none; stop.metric does (docs/using/stop.md)";
  else if (wanted)
    why = "there is no such checkpoint";
  return invalid("--checkpoint {}: {}; in {} there are {}", which, why, folder,
                 listed(store, numbers, best));
}

}  // namespace flux
