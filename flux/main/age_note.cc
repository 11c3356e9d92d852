#include "flux/main/age_note.h"

#include <algorithm>

#include "flux/base/text.h"

namespace flux {

std::string age_note(const Job& job, uint32_t workers) {
  // CTR-DNN, DeepFM and FM learn as well with gradients of 1,000 examples ago, and less with 2,000
  // (docs/design/async_age.md).
  constexpr uint64_t kNoticed = 1000, kBatchMin = 64;
  const uint64_t batch = job.data.batch_size;
  const uint64_t before = uint64_t{workers} * (1 + job.pull_ahead) - std::min(workers, 1U);
  if (job.mode == "sync" || workers < 2 || before * batch <= kNoticed || batch <= kBatchMin)
    return "";
  const uint64_t smaller = std::max(kBatchMin, batch / workers);
  return fmt::format(
      "note: {} workers push on their own, so a gradient is about {} examples old when it is "
      "applied; if the model learns less than with one worker, set data.batch: {}, or take fewer "
      "workers with more threads each. `flux sim --train JOB --staleness {}` tells what it costs",
      workers, with_commas(before * batch), smaller, before);
}

}  // namespace flux
