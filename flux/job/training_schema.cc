// The sections of the schema that say how weights are updated: optimizers and the schedule of
// learning rates. Their settings come from the libraries that use them.
#include <map>

#include "flux/base/text.h"
#include "flux/job/schema.h"
#include "flux/optimizer/settings.h"

namespace flux {
namespace {

// Names that people try for a setting of an optimizer.
std::vector<std::string> tried_for(const std::string& setting) {
  static const std::map<std::string, std::vector<std::string>> tried = {
      {"lr", {"learning_rate", "step_size", "eta", "alpha"}},
      {"initial_accumulator", {"initial_g2sum", "initial_accumulator_value"}},
      {"epsilon", {"eps"}},
      {"decay", {"rho", "decay_rate"}},
      {"weight_decay", {"wd"}},
      {"clip", {"clip_value", "gradient_clip"}},
      {"clip_norm", {"max_norm", "clip_by_norm"}},
      {"weight_min", {"weight_bounds", "min_weight"}},
      {"weight_max", {"max_weight"}},
  };
  const auto found = tried.find(setting);
  return found == tried.end() ? std::vector<std::string>{} : found->second;
}

void add_optimizer_setting(Section* s, const OptimizerSetting& setting) {
  using O = OptimizerOptions;
  const bool all = setting.rules().size() == optimizer_rules().size();
  const std::string doc =
      all ? setting.doc : fmt::format("{} Rules: {}.", setting.doc, join(setting.rules(), ", "));
  const auto number = setting.number;
  const auto flag = setting.flag;
  Field* field = nullptr;
  if (flag != nullptr) {
    field = &s->value<O>(
        setting.name, [flag](O & o) -> auto& { return o.*flag; }, doc);
  } else if (number != nullptr) {
    field = &s->value<O>(
        setting.name, [number](O & o) -> auto& { return o.*number; }, doc);
  } else {
    field = &s->value<O>(
        setting.name, [](O & o) -> auto& { return o.lr; }, doc);
  }
  field->tried_as(tried_for(setting.name));
  if (flag == nullptr) field->between(setting.min, setting.max);
  field->spec.min_open = setting.min_open;
  field->spec.max_open = setting.max_open;
  if (setting.name != "lr") field->defaults_to(setting.defaults());
}

Section make_optimizer_section() {
  using O = OptimizerOptions;
  Section s;
  s.doc =
      "An update rule and its settings (docs/using/optimizers.md); a setting that the rule does "
      "not use is refused.";
  s.value<O>(
       "rule", [](O & o) -> auto& { return o.rule; }, "Update rule.")
      .one_of(optimizer_rules())
      .tried_as({"name", "type", "optimizer", "algorithm"});
  for (const OptimizerSetting& setting : optimizer_settings()) add_optimizer_setting(&s, setting);
  return s;
}

Section make_lr_schedule_section() {
  using L = LrScheduleOptions;
  Section s;
  s.doc =
      "How all learning rates change in the course of the run: a factor of each batch, by the "
      "number of batches before it (docs/using/optimizers.md).";
  s.value<L>(
       "kind", [](L & l) -> auto& { return l.kind; }, "Shape of the decay after the warm-up.")
      .one_of(lr_schedule_kinds())
      .tried_as({"type", "name", "policy", "decay"});
  s.value<L>(
       "warmup_batches", [](L & l) -> auto& { return l.warmup_batches; },
       "Batches over which the rates rise from near 0 in a straight line.")
      .between(0, 4'000'000'000)
      .tried_as({"warmup", "warm_up", "warmup_steps"});
  s.value<L>(
       "batches", [](L & l) -> auto& { return l.batches; },
       "linear, cosine: batches from the warm-up to the end of the decay; exponential, step: "
       "batches after which the rates are multiplied by `rate`.")
      .between(0, 4'000'000'000)
      .defaults_to("none: needed where it is used")
      .tried_as({"steps", "total_steps", "decay_steps", "every"});
  s.value<L>(
       "rate", [](L & l) -> auto& { return l.rate; },
       "exponential, step: factor of every `batches` batches.")
      .above(0, 1)
      .tried_as({"gamma", "decay_rate"});
  s.value<L>(
       "end", [](L & l) -> auto& { return l.end; },
       "All but constant: the factor never falls below it.")
      .between(0, 1)
      .tried_as({"min", "final", "end_lr"});
  return s;
}

}  // namespace

const Section& optimizer_section() {
  static const Section section = make_optimizer_section();
  return section;
}

const Section& lr_schedule_section() {
  static const Section section = make_lr_schedule_section();
  return section;
}

}  // namespace flux
