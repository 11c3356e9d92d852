#include "flux/main/worker_setup.h"

#include <utility>

#include "flux/nn/net.h"

namespace flux {

Result<WireValue> wire_value(const std::string& name) {
  if (name == "fp32") return WireValue::kFp32;
  if (name == "fp16") return WireValue::kFp16;
  if (name == "bf16") return WireValue::kBf16;
  return invalid("wire: '{}' is none of fp32, fp16, bf16", name);
}

Result<WorkerSetup> make_worker_setup(const RoleJob& role, const JoinReply& reply, uint32_t lanes) {
  const Job& job = role.job;
  if (job.deterministic && lanes != 1)
    return invalid("the job is deterministic: start this worker with --threads 1");
  FLUX_ASSIGN_OR_RETURN(const Precision precision, choose_precision(job.precision));
  WorkerSetup setup;
  setup.mode = job.mode;
  setup.deterministic = job.deterministic;
  setup.lr_schedule = LrSchedule(job.lr_schedule);
  setup.lane.pull_ahead = job.deterministic ? 0 : job.pull_ahead;
  setup.lane.batch_max = job.data.batch_size;
  setup.lane.slices = slice_slots(job);
  if (job.phases.size() > 1) setup.lane.phases = phase_names(job);
  setup.lane.client.incarnation = reply.incarnation;
  setup.lane.client.shape = role.layout.shape;
  setup.lane.slot_groups = job.slot_groups;
  setup.lane.client.session.pushes_max = job.push_in_flight;
  for (uint32_t i = 0; i < lanes; ++i) {
    LaneSetup& lane = setup.lanes.emplace_back();
    for (const auto& graph : role.graphs) {
      FLUX_ASSIGN_OR_RETURN(auto net,
                            Net::compile(graph, NetOptions{precision, job.data.batch_size}));
      lane.nets.push_back(std::move(net));
    }
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
