#include "flux/main/worker_setup.h"

#include <utility>

#include "flux/nn/net.h"

namespace flux {

ModelShape model_shape(const RoleJob& role) {
  ModelShape shape;
  shape.sparse_shards = role.sparse_shards;
  shape.groups = role.job.key_groups;
  for (const TableOptions& table : role.job.tables) {
    shape.dims.push_back(table.dim);
    if (shape.groups > 1) shape.table_groups.push_back(table.group);
  }
  shape.parameters = role.graph->parameter_count();
  return shape;
}

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
  const ModelShape shape = model_shape(role);
  WorkerSetup setup;
  setup.mode = job.mode;
  setup.deterministic = job.deterministic;
  setup.lr_schedule = LrSchedule(job.lr_schedule);
  setup.lane.pull_ahead = job.deterministic ? 0 : job.pull_ahead;
  setup.lane.batch_max = job.data.batch_size;
  setup.lane.client.incarnation = reply.incarnation;
  setup.lane.client.sparse_shards = shape.sparse_shards;
  setup.lane.client.dims = shape.dims;
  setup.lane.client.parameters = shape.parameters;
  setup.lane.client.groups = shape.groups;
  setup.lane.client.table_groups = shape.table_groups;
  setup.lane.slot_groups = job.slot_groups;
  setup.lane.client.session.pushes_max = job.push_in_flight;
  for (uint32_t i = 0; i < lanes; ++i) {
    FLUX_ASSIGN_OR_RETURN(auto net,
                          Net::compile(role.graph, NetOptions{precision, job.data.batch_size}));
    setup.lanes.push_back({nullptr, std::move(net), {}});
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
