#include "flux/main/drill_sampler.h"

#include <utility>

#include <poll.h>

namespace flux {
namespace {

constexpr int kCalmMs = 200, kHurryMs = 50;

}  // namespace

DrillSampler::DrillSampler(TargetArguments target)
    : target_(std::move(target)), thread_([this] { run(); }) {}

DrillSampler::~DrillSampler() {
  end_ = true;
  thread_.join();
}

std::vector<StatusSample> DrillSampler::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(samples_, {});
}

StatusSample DrillSampler::sample() const {
  StatusSample out;
  const auto target = find_target(target_, true);
  if (target.is_ok() && (supervisor_ == 0 || (target.value().record &&
                                              target.value().record->supervisor == supervisor_))) {
    out.record = target.value().record;
    const auto status = ask_status(target.value());
    if (status.is_ok()) out.status = status.value();
    out.gone = !out.status && target.value().record && !seems_to_run(target.value());
  } else {
    out.gone = !target.is_ok();
  }
  out.at = steady_now_ns();
  return out;
}

void DrillSampler::run() {
  while (!end_) {
    StatusSample one = sample();
    {
      const std::lock_guard lock(mutex_);
      samples_.push_back(std::move(one));
    }
    ::poll(nullptr, 0, hurry_ ? kHurryMs : kCalmMs);
  }
}

}  // namespace flux
