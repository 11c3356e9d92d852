// check_stop(): whether a job can have what it is to stop by.
#include <algorithm>

#include "flux/base/text.h"
#include "flux/job/validate.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

// A loss of the job: what an evaluation may have metrics of.
struct LossOf {
  std::string phase, name;
  bool labelled = false;
  bool classes = false;  // it predicts one of many
};

std::vector<LossOf> losses_of(const Job& job) {
  std::vector<LossOf> out;
  const auto add = [&](const std::string& phase, const std::vector<NodeSpec>& layers) {
    for (const NodeSpec& layer : layers) {
      const OperatorDef* def = find_operator(layer.op);
      if (def == nullptr || !def->is_loss) continue;
      out.push_back(
          {phase, layer.name, def->label_input >= 0, layer.op == "softmax_cross_entropy"});
    }
  };
  if (job.phases.empty()) add(phase_names(job).front(), job.layers);
  for (const PhaseSpec& phase : job.phases) add(phase.name, phase.layers);
  return out;
}

// The checks of one `stop`; each adds what is wrong at the field that says it.
class StopCheck {
 public:
  StopCheck(const YamlEntry& map, Job* job, Problems* problems)
      : map_(map), job_(*job), stop_(job->stop), problems_(problems) {}

  void check() {
    if (!stop_.converges()) return check_alone();
    check_source();
    check_phase();
    if (stop_.on == "test" && stop_.metric != "loss" && problems_->empty()) check_loss();
  }

 private:
  void add(const char* field, const std::string& what, const std::string& hint) {
    const YamlEntry* entry = map_.value.find(field);
    problems_->add(entry != nullptr ? entry->origin : map_.origin, what, hint);
  }

  void check_alone() {
    for (const char* name : {"on", "phase", "head", "min_delta", "patience"})
      if (map_.value.find(name) != nullptr)
        add(name, fmt::format("'{}' without a metric", name),
            "say which with stop.metric, or remove it");
  }

  void check_source() {
    if (stop_.on == "train" && stop_.metric != "loss")
      add("metric", fmt::format("'{}' is not looked at while training", stop_.metric),
          "metric: loss, or on: test");
    if (stop_.on == "train" && !stop_.head.empty())
      add("head", "the loss of training is that of all heads together",
          "remove head, or on: test with metric: log_loss");
    if (stop_.on == "test" && job_.test.empty())
      add("metric", "nothing to evaluate: the job has no test data",
          "give data.test, or on: train with metric: loss");
    if (stop_.on == "test" && stop_.metric == "loss" &&
        !(stop_.phase.empty() && stop_.head.empty()))
      add("metric", "the loss on test data is that of all phases and heads together",
          "metric: log_loss, or without phase and head");
  }

  void check_phase() {
    const std::vector<std::string> names = phase_names(job_);
    if (stop_.phase.empty() || std::find(names.begin(), names.end(), stop_.phase) != names.end())
      return;
    add("phase",
        fmt::format("there is no phase '{}'{}", shorten(stop_.phase),
                    did_you_mean(stop_.phase, names)),
        fmt::format("phases: {}", join(names, ", ")));
  }

  // The loss that is meant: by its name, else the first with a label.
  void check_loss() {
    std::vector<std::string> names;
    const LossOf* meant = nullptr;
    const std::vector<LossOf> losses = losses_of(job_);
    for (const LossOf& loss : losses) {
      if (!stop_.phase.empty() && loss.phase != stop_.phase) continue;
      names.push_back(loss.name);
      const bool fits = stop_.head.empty() ? loss.labelled : loss.name == stop_.head;
      if (meant == nullptr && fits) meant = &loss;
    }
    if (meant == nullptr && !stop_.head.empty())
      return add("head",
                 fmt::format("there is no loss '{}'{}", shorten(stop_.head),
                             did_you_mean(stop_.head, names)),
                 fmt::format("losses: {}", join(names, ", ")));
    check_metric(meant);
    // A name may be that of a loss in several phases: the first is meant.
    if (meant != nullptr && !stop_.head.empty()) stop_.phase = meant->phase;
  }

  void check_metric(const LossOf* loss) {
    if (loss == nullptr || !loss->labelled)
      return add(
          "metric",
          fmt::format("there is no {}: the loss that is looked at has no label", stop_.metric),
          "metric: loss, without phase and head");
    if (loss->classes)
      return add("metric",
                 fmt::format("there is no {} of '{}', which predicts one of many classes",
                             stop_.metric, shorten(loss->name)),
                 "metric: loss, without phase and head");
    if ((stop_.metric == "gauc" || stop_.metric == "uauc") && job_.data.group.empty())
      add("metric", fmt::format("there is no {} without groups of examples", stop_.metric),
          "give data.group, the slot that says whose example it is; or metric: auc");
  }

  const YamlEntry& map_;
  const Job& job_;
  StopOptions& stop_;
  Problems* problems_;
};

}  // namespace

void check_stop(const YamlNode& root, Job* job, Problems* problems) {
  const YamlEntry* map = root.find("stop");
  if (map == nullptr || !map->value.is_map() || !problems->empty()) return;
  StopCheck(*map, job, problems).check();
}

}  // namespace flux
