// flux data gen: made data with a known truth.
#include <algorithm>
#include <cstdio>
#include <thread>

#include <unistd.h>

#include "flux/base/text.h"
#include "flux/data/criteo_gen.h"
#include "flux/main/commands.h"
#include "flux/storage/atomic_file.h"

namespace flux {

int gen_criteo_command(const GenArguments& arguments) {
  CriteoGenOptions options;
  options.examples = arguments.examples;
  options.seed = arguments.seed;
  options.truth_seed = arguments.truth_seed;
  const Status folder = make_folders(parent_folder(arguments.out));
  if (!folder.is_ok()) return report(folder);
  const unsigned threads = arguments.threads == 0
                               ? std::max(1U, std::thread::hardware_concurrency())
                               : arguments.threads;
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto progress = [&](uint64_t done) {
    if (terminal)
      fmt::print(stderr, "\r{} of {} examples", with_commas(done), with_commas(options.examples));
  };
  const auto made = generate_criteo(options, arguments.out, threads, progress);
  if (terminal) fmt::print(stderr, "\r\033[K");
  if (!made.is_ok()) return report(made.status());
  fmt::print("{}: {} examples, CTR {:.4f}, AUC of the hidden truth {:.4f}, {} distinct ids\n",
             arguments.out, with_commas(made.value().examples), made.value().ctr,
             made.value().oracle_auc, with_commas(made.value().distinct_ids));
  return 0;
}

}  // namespace flux
