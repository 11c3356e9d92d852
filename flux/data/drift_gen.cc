#include "flux/data/drift_gen.h"

#include <optional>
#include <set>

#include "flux/base/hash.h"
#include "flux/data/criteo_gen.h"
#include "flux/data/feasign_gen.h"
#include "flux/data/made_truth.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

std::string ending(const DriftGenOptions& options) {
  return fmt::format("{}{}", options.kind.empty() ? ".tsv" : ".txt", options.gzip ? ".gz" : "");
}

// Draws the files of one kind; keeps what is the same in all hours.
class HourMaker {
 public:
  HourMaker(const DriftGenOptions& options, unsigned threads,
            const std::function<void(uint64_t)>& progress)
      : options_(options), threads_(threads), progress_(progress) {
    if (options.kind.empty()) truth_.emplace(options.truth_seed, moment_at(options.drift, 0));
  }
  Result<DriftHour> make(uint32_t hour) {
    DriftHour made;
    made.hour = hour;
    made.path = join_path(options_.folder, hour_name(options_.drift, hour) + ending(options_));
    FLUX_RETURN_IF_ERROR(make_folders(parent_folder(made.path)));
    FLUX_RETURN_IF_ERROR(truth_ ? make_criteo(&made) : make_feasign(&made));
    return made;
  }

 private:
  uint64_t seed_of(uint32_t hour) const {
    return hash_pair(hash_pair(options_.seed, 0xd21f), hour);
  }
  Status make_criteo(DriftHour* made) {
    truth_->move_to(moment_at(options_.drift, made->hour));
    CriteoGenOptions options;
    options.examples = options_.examples;
    options.seed = seed_of(made->hour);
    FLUX_ASSIGN_OR_RETURN(const CriteoGenReport report,
                          generate_criteo(*truth_, options, made->path, threads_, progress_));
    made->labels.push_back({"label", report.ctr, report.oracle_auc});
    return Status::ok();
  }
  Status make_feasign(DriftHour* made) {
    FeasignGenOptions options;
    options.kind = options_.kind;
    options.examples = options_.examples;
    options.seed = seed_of(made->hour);
    options.truth_seed = options_.truth_seed;
    options.moment = moment_at(options_.drift, made->hour);
    FLUX_ASSIGN_OR_RETURN(const FeasignGenReport report,
                          generate_feasign(options, made->path, threads_, progress_));
    for (const auto& label : report.labels)
      made->labels.push_back({label.name, label.share, label.oracle_auc});
    return Status::ok();
  }

  const DriftGenOptions& options_;
  const unsigned threads_;
  const std::function<void(uint64_t)>& progress_;
  std::optional<CriteoTruth> truth_;  // of Criteo-like lines
};

}  // namespace

Status generate_drift(const DriftGenOptions& options, unsigned threads,
                      const std::function<void(const DriftHour&)>& written,
                      const std::function<void(uint64_t)>& progress) {
  FLUX_RETURN_IF_ERROR(check_drift(options.drift));
  if (!options.kind.empty()) FLUX_RETURN_IF_ERROR(make_truth(options.kind, 1).status());
  if (options.folder.empty()) return invalid("no folder to write to was named");
  if (path_exists(options.folder) && !is_folder(options.folder))
    return invalid("cannot write hours to {}: it is a file; name a folder", options.folder);
  HourMaker maker(options, threads, progress);
  for (uint32_t hour = 0; hour < options.drift.hours; ++hour) {
    FLUX_ASSIGN_OR_RETURN(const DriftHour made, maker.make(hour));
    if (written) written(made);
  }
  return Status::ok();
}

Result<std::string> drift_yaml(const DriftGenOptions& options) {
  std::string yaml = "data:\n  format: criteo_tsv\n";
  if (!options.kind.empty()) {
    FLUX_ASSIGN_OR_RETURN(const auto truth, make_truth(options.kind, options.truth_seed));
    yaml = truth->yaml();
  }
  yaml += "passes:\n";
  std::set<std::string> days;
  for (uint32_t hour = 0; hour < options.drift.hours; ++hour)
    days.insert(parent_folder(hour_name(options.drift, hour)));
  for (const std::string& day : days)
    yaml += fmt::format("  - {{name: day-{}, train: {}}}\n", day,
                        join_path(options.folder, day + "/*" + ending(options)));
  return yaml;
}

}  // namespace flux
