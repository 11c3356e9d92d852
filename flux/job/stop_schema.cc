// The section of the schema that says when a job ends before its data does.
#include "flux/job/schema.h"

namespace flux {
namespace {

void add_limits(Section* s) {
  using S = StopOptions;
  s->value<S>(
       "examples", [](S & o) -> auto& { return o.examples; },
       "Ends when so many examples are applied over the life of the model, each repeat counted; 0: "
       "no limit.")
      .tried_as({"max_examples", "samples", "limit"});
  s->value<S>(
       "steps", [](S & o) -> auto& { return o.steps; },
       "Ends when so many batches are applied over the life of the model; 0: no limit.")
      .tried_as({"max_steps", "iterations", "batches"});
  s->value<S>(
       "seconds", [](S & o) -> auto& { return o.seconds; },
       "Ends when this run has trained for so long; 0: no limit.")
      .between(0, 31'536'000)
      .tried_as({"time", "wall_time", "max_seconds", "timeout"});
}

Section make_stop_section() {
  using S = StopOptions;
  Section s;
  s.doc =
      "Limits, and a metric that gets no better. What comes first ends the job: what is in flight "
      "is finished, a checkpoint is written, and the line of the end says why.";
  add_limits(&s);
  std::vector<std::string> names;
  for (const StopMetric& metric : stop_metrics()) names.emplace_back(metric.name);
  s.value<S>(
       "metric", [](S & o) -> auto& { return o.metric; },
       "Ends when this does not get better any more; the best checkpoint is kept.")
      .one_of(names)
      .tried_as({"monitor", "on_metric"})
      .defaults_to("none");
  s.value<S>(
       "on", [](S & o) -> auto& { return o.on; },
       "test: looked at after each evaluation; train: the loss of each epoch of a phase.")
      .one_of({"test", "train"});
  s.value<S>(
       "phase", [](S & o) -> auto& { return o.phase; }, "Whose metric, in a job with phases.")
      .defaults_to("the first");
  s.value<S>(
       "head", [](S & o) -> auto& { return o.head; },
       "Whose metric, in a network with several losses: the name of the loss.")
      .defaults_to("the first");
  s.value<S>(
       "min_delta", [](S & o) -> auto& { return o.min_delta; },
       "Better by no more than this counts as not better.")
      .between(0, 1e9);
  s.value<S>(
       "patience", [](S & o) -> auto& { return o.patience; },
       "Looks in a row without an improvement after which it ends.")
      .between(1, 10'000);
  return s;
}

}  // namespace

const Section& stop_section() {
  static const Section section = make_stop_section();
  return section;
}

}  // namespace flux
