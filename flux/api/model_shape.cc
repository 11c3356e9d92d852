#include "flux/api/model_shape.h"

#include <fmt/core.h>

namespace flux {

std::string to_string(const ModelShape& shape) {
  std::string dims;
  for (const uint32_t dim : shape.dims) dims += fmt::format("{}{}", dims.empty() ? "" : ",", dim);
  return fmt::format("{} shards, rows of [{}] floats, {} dense parameters", shape.sparse_shards,
                     dims, shape.parameters);
}

}  // namespace flux
