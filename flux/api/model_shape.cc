#include "flux/api/model_shape.h"

#include <fmt/core.h>

namespace flux {

uint32_t ModelShape::group_of(uint32_t sparse_shard) const {
  uint32_t group = 0;
  while (group + 1 < groups && group_shards(group).end <= sparse_shard) ++group;
  return group;
}

std::vector<uint32_t> ModelShape::widths(uint32_t group) const {
  std::vector<uint32_t> out = dims;
  for (size_t t = 0; t < table_groups.size(); ++t)
    if (table_groups[t] != 0 && table_groups[t] != group + 1) out[t] = 0;
  return out;
}

std::string to_string(const ModelShape& shape) {
  std::string dims;
  for (const uint32_t dim : shape.dims) dims += fmt::format("{}{}", dims.empty() ? "" : ",", dim);
  std::string groups;
  for (const uint32_t g : shape.table_groups)
    groups += fmt::format("{}{}", groups.empty() ? "" : ",", g);
  return fmt::format(
      "{} shards, rows of [{}] floats{}, {} dense parameters", shape.sparse_shards, dims,
      shape.groups == 1 ? "" : fmt::format(" in the groups [{}] of {}", groups, shape.groups),
      shape.parameters);
}

}  // namespace flux
