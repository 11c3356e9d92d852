#include "flux/main/worker_setup.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "flux/nn/net.h"

namespace flux {

Result<WireValue> wire_value(const std::string& name) {
  if (name == "fp32") return WireValue::kFp32;
  if (name == "fp16") return WireValue::kFp16;
  if (name == "bf16") return WireValue::kBf16;
  return invalid("wire: '{}' is none of fp32, fp16, bf16", name);
}

Result<WorkerSetup> make_worker_setup(const RoleJob& role, const JoinReply& reply,
                                      uint32_t threads) {
  const Job& job = role.job;
  FLUX_ASSIGN_OR_RETURN(const Precision precision, choose_precision(job.precision));
  WorkerSetup setup;
  setup.mode = job.mode;
  setup.deterministic = job.deterministic;
  setup.lr_schedule = LrSchedule(job.lr_schedule);
  setup.trainer.pull_ahead = job.deterministic ? 0 : job.pull_ahead;
  setup.trainer.batch_max = job.data.batch_size;
  setup.trainer.slices = slice_slots(job);
  if (job.phases.size() > 1) setup.trainer.phases = phase_names(job);
  setup.trainer.client.incarnation = reply.incarnation;
  setup.trainer.client.shape = role.layout.shape;
  setup.trainer.slot_groups = job.slot_groups;
  setup.trainer.client.session.pushes_max = job.push_in_flight;
  // The model does not depend on how many they are, and those without a core only take memory.
  constexpr uint32_t kMembersMin = 64;
  const uint32_t cores = std::max(kMembersMin, std::thread::hardware_concurrency());
  setup.team = std::make_shared<Team>(std::min({threads, cores, Team::kMembersMax}));
  for (const auto& graph : role.graphs) {
    NetOptions net;
    net.precision = precision;
    net.batch_max = job.data.batch_size;
    net.team = setup.team.get();
    FLUX_ASSIGN_OR_RETURN(auto compiled, Net::compile(graph, net));
    setup.nets.push_back(std::move(compiled));
  }
  setup.open_dataset =
      [data = job.data](const Geometry& cut) -> Result<std::shared_ptr<const Dataset>> {
    DataOptions options = data;
    options.shuffle = cut.shuffle_seed != 0;  // test data keeps its order
    FLUX_ASSIGN_OR_RETURN(auto dataset, Dataset::open(cut, options));
    return std::shared_ptr<const Dataset>(std::move(dataset));
  };
  return setup;
}

}  // namespace flux
