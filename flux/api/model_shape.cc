#include "flux/api/model_shape.h"

#include <fmt/core.h>

namespace flux {

uint32_t ModelShape::dense_shards() const {
  if (phases.empty()) return dense_shard_count(parameters);
  uint32_t shards = 0;
  for (const PhaseShape& phase : phases) shards += dense_shard_count(phase.parameters);
  return shards;
}

uint64_t ModelShape::dense_begin(uint32_t d) const {
  if (phases.empty()) return dense_shard_begin(parameters, d);
  uint64_t begin = 0;
  for (const PhaseShape& phase : phases) {
    const uint32_t shards = dense_shard_count(phase.parameters);
    if (d < shards) return begin + dense_shard_begin(phase.parameters, d);
    d -= shards;
    begin += phase.parameters;
  }
  return begin;
}

PhaseView ModelShape::phase(uint32_t phase) const {
  if (phases.empty()) return {dims, 0, parameters, 0, dense_shards()};
  PhaseView view;
  for (uint32_t p = 0; p <= phase; ++p) {
    view.dims = phases[p].dims;
    view.dense_begin = view.dense_end;
    view.dense_end += phases[p].parameters;
    view.first_dense = view.last_dense;
    view.last_dense += dense_shard_count(phases[p].parameters);
  }
  return view;
}

uint32_t ModelShape::phase_of_dense(uint32_t d) const {
  for (uint32_t p = 0; p + 1 < phases.size(); ++p)
    if (phase(p).has_dense(d)) return p;
  return phases.empty() ? 0 : static_cast<uint32_t>(phases.size() - 1);
}

uint32_t ModelShape::group_of(uint32_t sparse_shard) const {
  uint32_t group = 0;
  while (group + 1 < groups && group_shards(group).end <= sparse_shard) ++group;
  return group;
}

std::vector<uint32_t> ModelShape::widths(uint32_t phase, uint32_t group) const {
  const std::span<const uint32_t> all = this->phase(phase).dims;
  std::vector<uint32_t> out(all.begin(), all.end());
  for (size_t t = 0; t < table_groups.size(); ++t)
    if (table_groups[t] != 0 && table_groups[t] != group + 1) out[t] = 0;
  return out;
}

std::string to_string(const ModelShape& shape) {
  const auto list = [](std::span<const uint32_t> numbers) {
    std::string text;
    for (const uint32_t n : numbers) text += fmt::format("{}{}", text.empty() ? "" : ",", n);
    return text;
  };
  std::string text =
      fmt::format("{} shards, rows of [{}] floats", shape.sparse_shards, list(shape.dims));
  if (shape.groups != 1)
    text += fmt::format(" in the groups [{}] of {}", list(shape.table_groups), shape.groups);
  text += fmt::format(", {} dense parameters", shape.parameters);
  for (const PhaseShape& phase : shape.phases)
    text += fmt::format(", a phase with [{}] and {}", list(phase.dims), phase.parameters);
  return text;
}

}  // namespace flux
