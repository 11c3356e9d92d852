// LrSchedule: how the learning rate changes in the course of a run.
//
//   factor(position) = warm-up(position) * decay(position)
//
// A batch's position is the number of examples before it in the run, in batches: those of closed
// passes, of earlier epochs and of earlier blocks, whether they are trained already or not. It
// follows from the batch's identity and the data alone, so a batch that is trained again, by
// anybody and after any crash, has the same factor. The factor multiplies what a change of workers
// makes of the rate (cluster/lr_policy.h), for tables and dense weights alike. With w =
// warmup_batches and t = max(0, position - w), warm-up is min(1, (position + 1) / w) and decay is
//   constant      1
//   linear        1 - (1 - end) min(1, t / batches)
//   cosine        end + (1 - end) (1 + cos(pi min(1, t / batches))) / 2
//   exponential   rate ^ (t / batches), at least end
//   step          rate ^ floor(t / batches), at least end
//   inverse_sqrt  sqrt(h / (h + t)) with h = max(w, 1), at least end
// Pure values; any thread. Nothing fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"

namespace flux {

struct LrScheduleOptions {
  std::string kind = "constant";  // one of lr_schedule_kinds()
  uint32_t warmup_batches = 0;
  uint32_t batches = 0;  // linear, cosine: until the end; exponential, step: of one `rate`
  double rate = 0.1;     // exponential, step
  double end = 0;        // least factor; of linear and cosine the last
  bool operator==(const LrScheduleOptions&) const = default;
};

const std::vector<std::string>& lr_schedule_kinds();
// Whether this kind looks at the field of this name (but kind and warmup_batches, which all do).
bool lr_schedule_uses(const std::string& kind, const std::string& field);
// Names what is wrong and what is allowed.
Status check_lr_schedule(const LrScheduleOptions& options);

class LrSchedule {
 public:
  LrSchedule() = default;
  explicit LrSchedule(LrScheduleOptions options) : options_(std::move(options)) {}

  // In [kMin, 1]; exactly 1 for a constant rate without warm-up.
  float factor(uint64_t position) const;

  static constexpr double kMin = 1e-6;  // a rate of zero is none

 private:
  double decay(double t) const;

  LrScheduleOptions options_;
};

}  // namespace flux
