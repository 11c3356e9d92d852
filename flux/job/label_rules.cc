// What the losses of a job need of its labels.
#include <algorithm>
#include <map>

#include "flux/job/validate.h"
#include "flux/nn/graph_checks.h"

namespace flux {
namespace {

const OperatorInfo* info_of(const std::string& op) {
  const auto& infos = operator_infos();
  const auto at = std::find_if(infos.begin(), infos.end(),
                               [&](const OperatorInfo& info) { return info.name == op; });
  return at == infos.end() ? nullptr : &*at;
}

std::vector<const std::vector<NodeSpec>*> networks(const Job& job) {
  std::vector<const std::vector<NodeSpec>*> out;
  if (job.phases.empty()) out.push_back(&job.layers);
  for (const PhaseSpec& phase : job.phases) out.push_back(&phase.layers);
  return out;
}

}  // namespace

void find_label_rules(Job* job) {
  std::map<std::string, uint32_t> rules;  // name of a label: its classes
  bool classes = false;
  for (const std::vector<NodeSpec>* layers : networks(*job)) {
    for (const NodeSpec& layer : *layers) {
      const OperatorInfo* info = info_of(layer.op);
      classes = classes || layer.op == "softmax_cross_entropy";
      if (info == nullptr || info->probability_input < 0) continue;
      const auto label = static_cast<size_t>(info->probability_input);
      if (layer.inputs.size() > label) rules[layer.inputs[label]] = 0;
    }
  }
  const auto graphs = classes ? build_graphs(*job, features_of(job->data)) : Graphs();
  for (size_t g = 0; graphs.is_ok() && g < graphs.value().size(); ++g) {
    const Graph& graph = *graphs.value()[g];
    for (const ClassLabel& one : class_labels(graph)) {
      const auto [rule, is_new] = rules.emplace(graph.inputs().labels[one.label], one.classes);
      rule->second = std::min(rule->second, one.classes);
    }
  }
  for (uint32_t l = 0; l < job->data.labels.size(); ++l)
    if (const auto rule = rules.find(job->data.labels[l]); rule != rules.end())
      job->data.label_rules.push_back({l, rule->second});
}

}  // namespace flux
