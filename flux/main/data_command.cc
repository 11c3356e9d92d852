// flux data gen: made data with a known truth.
#include "flux/base/text.h"
#include "flux/data/criteo_gen.h"
#include "flux/data/drift_gen.h"
#include "flux/data/feasign_gen.h"
#include "flux/main/commands.h"
#include "flux/main/gen_progress.h"
#include "flux/main/text_out.h"
#include "flux/storage/atomic_file.h"

namespace flux {

namespace {

Result<CriteoGenReport> generate(const GenArguments& arguments, const CriteoGenOptions& options) {
  const GenProgress progress(options.examples);
  return generate_criteo(options, arguments.out, threads_of(arguments.threads), progress.show());
}

Result<FeasignGenReport> generate(const GenArguments& arguments, const FeasignGenOptions& options) {
  const GenProgress progress(options.examples);
  return generate_feasign(options, arguments.out, threads_of(arguments.threads), progress.show());
}

// One line per hour: what it is, how many are positive, and what a model can reach.
void print_hour(const DriftHour& hour) {
  std::string line = hour.path;
  for (const DriftHour::Label& label : hour.labels)
    line +=
        fmt::format("  {}: {:.4f} are 1, best AUC {:.4f}", label.name, label.share, label.best_auc);
  fmt::print("{}\n", line);
}

Status generate_hours(const GenArguments& arguments) {
  if (arguments.out == kStandardOutput)
    return invalid("--hours writes a file per hour: --out has to be a folder, not -");
  DriftGenOptions options;
  options.kind = arguments.kind;
  options.folder = arguments.out;
  options.gzip = arguments.gzip;
  options.examples = arguments.examples;
  options.seed = arguments.seed;
  options.truth_seed = arguments.truth_seed;
  options.drift = arguments.drift;
  FLUX_ASSIGN_OR_RETURN(options.drift.start, parse_start(arguments.start));
  FLUX_RETURN_IF_ERROR(
      generate_drift(options, threads_of(arguments.threads), print_hour, /*progress=*/{}));
  FLUX_ASSIGN_OR_RETURN(const std::string yaml, drift_yaml(options));
  fmt::print("a job reads it with\n{}", yaml);
  return Status::ok();
}

}  // namespace

int gen_criteo_command(const GenArguments& arguments) {
  if (arguments.drift.hours > 0) return report(generate_hours(arguments));
  CriteoGenOptions options;
  options.examples = arguments.examples;
  options.seed = arguments.seed;
  options.truth_seed = arguments.truth_seed;
  const Status folder = make_folders(parent_folder(arguments.out));
  if (!folder.is_ok()) return report(folder);
  const auto made = generate(arguments, options);
  if (!made.is_ok()) return report(made.status());
  fmt::print(told_beside(arguments.out),
             "{}: {} examples, CTR {:.4f}, AUC of the hidden truth {:.4f}, {} distinct ids\n",
             arguments.out, with_commas(made.value().examples), made.value().ctr,
             made.value().oracle_auc, with_commas(made.value().distinct_ids));
  return 0;
}

int gen_feasign_command(const GenArguments& arguments) {
  if (arguments.drift.hours > 0) return report(generate_hours(arguments));
  const FeasignGenOptions options{arguments.kind, arguments.examples, arguments.seed,
                                  arguments.truth_seed};
  const Status folder = make_folders(parent_folder(arguments.out));
  if (!folder.is_ok()) return report(folder);
  const auto made = generate(arguments, options);
  if (!made.is_ok()) return report(made.status());
  std::FILE* const told = told_beside(arguments.out);
  fmt::print(told, "{}: {} examples\n", arguments.out, with_commas(made.value().examples));
  for (const FeasignGenReport::Label& label : made.value().labels)
    fmt::print(told, "  {}: {:.4f} are 1, AUC of the hidden truth {:.4f}\n", label.name,
               label.share, label.oracle_auc);
  fmt::print(told, "a job reads it with\n{}", made.value().yaml);
  return 0;
}

}  // namespace flux
