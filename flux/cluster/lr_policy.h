// LrPolicy: what a change of the number of workers does to the learning rate.
//
//   target = (workers / reference) ^ (0 | 1 | 0.5)     for none | linear | sqrt
//
// The factor moves to a new target in a straight line from where it is, over `warmup_batches`
// batches that are leased, so that neither a worker that comes nor one that goes makes a jump. A
// lease carries the factor of its moment (LeaseAnswer::lr_scale) and every push of its batches the
// same (PushRequest::lr_scale), where it multiplies the learning rate of each rule.
// Use: on every change of the members workers(n); for every block that is leased to be trained
// factor(), then leased(batches). state() goes to wherever decisions are kept; a coordinator that
// comes back goes on from it.
// Pure: no clock, no threads. Nothing fails.
#pragma once

#include <cstdint>
#include <string>

namespace flux {

struct LrPolicyOptions {
  std::string lr = "none";         // none | linear | sqrt
  uint32_t reference = 0;          // workers that the learning rate is meant for; 0: see LrPolicy
  uint32_t warmup_batches = 1000;  // 0: at once
  bool operator==(const LrPolicyOptions&) const = default;
};

// Where a policy stands.
struct LrPolicyState {
  uint32_t reference = 1;
  uint32_t workers = 1;  // of the target
  double factor = 1;
  uint64_t left = 0;  // batches until the target is reached
  bool operator==(const LrPolicyState&) const = default;
};

class LrPolicy {
 public:
  // `began_with`: the workers that the job was started with; the reference if the options name
  // none. Not the first number that happened to join: then every start would be a change.
  LrPolicy(const LrPolicyOptions& options, uint32_t began_with);
  // Goes on where another one stood. The options may be new; the factor still does not jump.
  LrPolicy(const LrPolicyOptions& options, const LrPolicyState& state);

  // So many workers train from now on. 0 changes nothing: nobody trains.
  void workers(uint32_t count);
  void leased(uint32_t batches);
  // In [kMin, kMax].
  float factor() const { return static_cast<float>(state_.factor); }
  // What factor() goes to.
  double target() const;
  const LrPolicyState& state() const { return state_; }

  // Bounds of the factor, far from what helps; within those of api/server.h.
  static constexpr double kMin = 1e-3;
  static constexpr double kMax = 1e3;

 private:
  void head_for_target();

  LrPolicyOptions options_;
  LrPolicyState state_;
};

}  // namespace flux
