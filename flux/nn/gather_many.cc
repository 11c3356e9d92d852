#include "flux/nn/gather_many.h"

#include <algorithm>

namespace flux {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

const float* row_of(const ManyShape& shape, const TableInput& in, uint32_t occurrence) {
  return in.rows + static_cast<size_t>(in.index[occurrence]) * shape.dim;
}

void pool_max(const ManyShape& shape, const TableInput& in, KeyRange keys, float* line,
              uint32_t* winners) {
  std::fill(winners, winners + shape.dim, kNobody);
  for (uint32_t i = keys.begin; i < keys.end; ++i) {
    const float* row = row_of(shape, in, i);
    for (uint32_t d = 0; d < shape.dim; ++d) {
      if (winners[d] != kNobody && !(row[d] > line[d])) continue;
      line[d] = row[d];
      winners[d] = i;
    }
  }
}

// line = the pooled rows of one slot.
void pool_slot(const ManyShape& shape, const TableInput& in, KeyRange keys, float* line,
               uint32_t* winners) {
  std::fill(line, line + shape.dim, 0.0F);
  if (shape.pool == Pool::kMax) return pool_max(shape, in, keys, line, winners);
  if (shape.pool == Pool::kFirst) keys.end = std::min(keys.end, keys.begin + 1);
  for (uint32_t i = keys.begin; i < keys.end; ++i) {
    const float* row = row_of(shape, in, i);
    for (uint32_t d = 0; d < shape.dim; ++d) line[d] += row[d];
  }
  if (shape.pool != Pool::kMean || keys.end == keys.begin) return;
  const float share = 1.0F / static_cast<float>(keys.end - keys.begin);
  for (uint32_t d = 0; d < shape.dim; ++d) line[d] *= share;
}

void unpool_slot(const ManyShape& shape, const TableInput& in, KeyRange keys, const float* line,
                 const uint32_t* winners, float* gradient) {
  const auto to = [&](uint32_t i) {
    return gradient + static_cast<size_t>(in.index[i]) * shape.dim;
  };
  if (shape.pool == Pool::kMax) {
    for (uint32_t d = 0; d < shape.dim; ++d)
      if (winners[d] != kNobody) to(winners[d])[d] += line[d];
    return;
  }
  if (shape.pool == Pool::kFirst) keys.end = std::min(keys.end, keys.begin + 1);
  const float share = shape.pool == Pool::kMean && keys.end > keys.begin
                          ? 1.0F / static_cast<float>(keys.end - keys.begin)
                          : 1.0F;
  for (uint32_t i = keys.begin; i < keys.end; ++i) {
    float* row = to(i);
    for (uint32_t d = 0; d < shape.dim; ++d) row[d] += share * line[d];
  }
}

// Where the winners of one slot of one example are kept.
size_t winners_at(const ManyShape& shape, uint32_t example, size_t slot) {
  return shape.pool == Pool::kMax ? (example * shape.slots.size() + slot) * shape.dim : 0;
}

void gather_sequence(const ManyShape& shape, const TableInput& in, const uint32_t* begin,
                     uint32_t batch, const Tensor& out, float* line) {
  for (uint32_t b = 0; b < batch; ++b) {
    const KeyRange keys =
        shown(key_range(begin, shape.all_slots, b, shape.slots[0]), shape.length, shape.keep_last);
    for (uint32_t t = 0; t < shape.length; ++t) {
      const bool has = t < keys.end - keys.begin;
      std::fill(line, line + shape.dim, 0.0F);
      write_row(slice(out, t * shape.dim, shape.dim), b,
                has ? row_of(shape, in, keys.begin + t) : line, false);
    }
  }
}

void scatter_sequence(const ManyShape& shape, const TableInput& in, const uint32_t* begin,
                      uint32_t batch, const Tensor& from, float* line, float* gradient) {
  for (uint32_t b = 0; b < batch; ++b) {
    const KeyRange keys =
        shown(key_range(begin, shape.all_slots, b, shape.slots[0]), shape.length, shape.keep_last);
    for (uint32_t i = keys.begin; i < keys.end; ++i) {
      const float* g = read_row(slice(from, (i - keys.begin) * shape.dim, shape.dim), b, line);
      float* row = gradient + static_cast<size_t>(in.index[i]) * shape.dim;
      for (uint32_t d = 0; d < shape.dim; ++d) row[d] += g[d];
    }
  }
}

}  // namespace

void gather_many(const ManyShape& shape, const TableInput& in, const uint32_t* begin,
                 uint32_t batch, const Tensor& out, float* line, uint32_t* winners) {
  if (shape.length > 0) return gather_sequence(shape, in, begin, batch, out, line);
  for (uint32_t b = 0; b < batch; ++b) {
    for (size_t s = 0; s < shape.slots.size(); ++s) {
      const KeyRange keys = key_range(begin, shape.all_slots, b, shape.slots[s]);
      pool_slot(shape, in, keys, line, winners + winners_at(shape, b, s));
      const uint32_t at = shape.add_slots ? 0 : static_cast<uint32_t>(s) * shape.dim;
      write_row(slice(out, at, shape.dim), b, line, shape.add_slots && s > 0);
    }
  }
}

void scatter_many(const ManyShape& shape, const TableInput& in, const uint32_t* begin,
                  uint32_t batch, const Tensor& out_gradient, float* line, const uint32_t* winners,
                  float* gradient) {
  if (shape.length > 0)
    return scatter_sequence(shape, in, begin, batch, out_gradient, line, gradient);
  for (uint32_t b = 0; b < batch; ++b) {
    for (size_t s = 0; s < shape.slots.size(); ++s) {
      const uint32_t at = shape.add_slots ? 0 : static_cast<uint32_t>(s) * shape.dim;
      const float* g = read_row(slice(out_gradient, at, shape.dim), b, line);
      unpool_slot(shape, in, key_range(begin, shape.all_slots, b, shape.slots[s]), g,
                  winners + winners_at(shape, b, s), gradient);
    }
  }
}

}  // namespace flux
