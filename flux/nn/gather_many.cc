#include "flux/nn/gather_many.h"

#include <algorithm>
#include <cmath>

namespace flux {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;  // also: rows without an end

// The rows of a table and how they are pooled. Two kinds, so that data without values pays nothing
// for those that have some.
template <bool kValues>
class Pooling {
 public:
  Pooling(const ManyShape& shape, const TableInput& in, const float* values, uint32_t first_row = 0,
          uint32_t end_row = kNobody)
      : shape_(shape),
        in_(in),
        values_(values),
        first_row_(first_row),
        rows_(end_row - first_row) {}

  float value(uint32_t occurrence) const { return kValues ? values_[occurrence] : 1.0F; }
  const float* row(uint32_t occurrence) const {
    return in_.rows + static_cast<size_t>(in_.index[occurrence]) * shape_.dim;
  }
  float* gradient_of(float* gradient, uint32_t occurrence) const {
    return gradient + static_cast<size_t>(in_.index[occurrence]) * shape_.dim;
  }

  // Whether the row of an occurrence is one of those whose gradients are wanted.
  bool wants(uint32_t occurrence) const { return in_.index[occurrence] - first_row_ < rows_; }

  // line = the pooled rows of one slot.
  void pool(KeyRange keys, float* line, uint32_t* winners) const {
    std::fill(line, line + shape_.dim, 0.0F);
    if (shape_.pool == Pool::kMax) return pool_max(keys, line, winners);
    if (shape_.pool == Pool::kFirst) keys.end = std::min(keys.end, keys.begin + 1);
    for (uint32_t i = keys.begin; i < keys.end; ++i) add_row(i, line);
    if (shape_.pool != Pool::kMean || keys.end == keys.begin) return;
    const float share = share_of(keys);
    for (uint32_t d = 0; d < shape_.dim; ++d) line[d] *= share;
  }

  void unpool(KeyRange keys, const float* line, const uint32_t* winners, float* gradient) const {
    if (shape_.pool == Pool::kMax) {
      for (uint32_t d = 0; d < shape_.dim; ++d)
        if (winners[d] != kNobody && wants(winners[d]))
          gradient_of(gradient, winners[d])[d] += value(winners[d]) * line[d];
      return;
    }
    if (shape_.pool == Pool::kFirst) keys.end = std::min(keys.end, keys.begin + 1);
    const float share = shape_.pool == Pool::kMean ? share_of(keys) : 1.0F;
    for (uint32_t i = keys.begin; i < keys.end; ++i) {
      if (!wants(i)) continue;
      float* row = gradient_of(gradient, i);
      const float scale = share * value(i);
      for (uint32_t d = 0; d < shape_.dim; ++d) row[d] += scale * line[d];
    }
  }

 private:
  void add_row(uint32_t i, float* line) const {
    const float* from = row(i);
    if constexpr (kValues) {
      const float v = values_[i];
      for (uint32_t d = 0; d < shape_.dim; ++d) line[d] += v * from[d];
    } else {
      for (uint32_t d = 0; d < shape_.dim; ++d) line[d] += from[d];
    }
  }
  void pool_max(KeyRange keys, float* line, uint32_t* winners) const {
    std::fill(winners, winners + shape_.dim, kNobody);
    for (uint32_t i = keys.begin; i < keys.end; ++i) {
      const float* from = row(i);
      const float v = value(i);
      for (uint32_t d = 0; d < shape_.dim; ++d) {
        if (winners[d] != kNobody && !(v * from[d] > line[d])) continue;
        line[d] = v * from[d];
        winners[d] = i;
      }
    }
  }
  float share_of(KeyRange keys) const {
    if (keys.end == keys.begin) return 0;
    if constexpr (!kValues) return 1.0F / static_cast<float>(keys.end - keys.begin);
    float sum = 0;
    for (uint32_t i = keys.begin; i < keys.end; ++i) sum += std::fabs(values_[i]);
    return sum > 0 ? 1.0F / sum : 0.0F;
  }

  const ManyShape& shape_;
  const TableInput& in_;
  const float* values_;
  uint32_t first_row_, rows_;
};

// Where the winners of one slot of one example are kept.
size_t winners_at(const ManyShape& shape, uint32_t example, size_t slot) {
  return shape.pool == Pool::kMax ? (example * shape.slots.size() + slot) * shape.dim : 0;
}

KeyRange sequence_range(const ManyShape& shape, const BatchKeys& keys, uint32_t example) {
  return shown(key_range(keys.begin, shape.all_slots, example, shape.slots[0]), shape.length,
               shape.keep_last);
}

template <bool kValues>
void gather_sequence(const ManyShape& shape, const Pooling<kValues>& rows, const BatchKeys& keys,
                     const Tensor& out, float* line) {
  for (uint32_t b = keys.first; b < keys.end; ++b) {
    const KeyRange range = sequence_range(shape, keys, b);
    for (uint32_t t = 0; t < shape.length; ++t) {
      const bool has = t < range.end - range.begin;
      const float* from = has ? rows.row(range.begin + t) : line;
      if (!has) std::fill(line, line + shape.dim, 0.0F);
      if (kValues && has) {
        const float v = rows.value(range.begin + t);
        for (uint32_t d = 0; d < shape.dim; ++d) line[d] = v * from[d];
        from = line;
      }
      write_row(slice(out, t * shape.dim, shape.dim), b, from, false);
    }
  }
}

template <bool kValues>
void scatter_sequence(const ManyShape& shape, const Pooling<kValues>& rows, const BatchKeys& keys,
                      const Tensor& from, float* line, float* gradient) {
  for (uint32_t b = keys.first; b < keys.end; ++b) {
    const KeyRange range = sequence_range(shape, keys, b);
    for (uint32_t i = range.begin; i < range.end; ++i) {
      if (!rows.wants(i)) continue;
      const float* g = read_row(slice(from, (i - range.begin) * shape.dim, shape.dim), b, line);
      float* row = rows.gradient_of(gradient, i);
      const float v = rows.value(i);
      for (uint32_t d = 0; d < shape.dim; ++d) row[d] += v * g[d];
    }
  }
}

template <bool kValues>
void gather(const ManyShape& shape, const TableInput& in, const BatchKeys& keys, const Tensor& out,
            float* line, uint32_t* winners) {
  const Pooling<kValues> rows(shape, in, keys.values);
  if (shape.length > 0) return gather_sequence(shape, rows, keys, out, line);
  for (uint32_t b = keys.first; b < keys.end; ++b) {
    for (size_t s = 0; s < shape.slots.size(); ++s) {
      rows.pool(key_range(keys.begin, shape.all_slots, b, shape.slots[s]), line,
                winners + winners_at(shape, b, s));
      const uint32_t at = shape.add_slots ? 0 : static_cast<uint32_t>(s) * shape.dim;
      write_row(slice(out, at, shape.dim), b, line, shape.add_slots && s > 0);
    }
  }
}

template <bool kValues>
void scatter(const ManyShape& shape, const TableInput& in, const BatchKeys& keys,
             const Tensor& out_gradient, float* line, const uint32_t* winners, uint32_t first_row,
             uint32_t end_row, float* gradient) {
  const Pooling<kValues> rows(shape, in, keys.values, first_row, end_row);
  if (shape.length > 0) return scatter_sequence(shape, rows, keys, out_gradient, line, gradient);
  for (uint32_t b = keys.first; b < keys.end; ++b) {
    for (size_t s = 0; s < shape.slots.size(); ++s) {
      const uint32_t at = shape.add_slots ? 0 : static_cast<uint32_t>(s) * shape.dim;
      const float* g = read_row(slice(out_gradient, at, shape.dim), b, line);
      rows.unpool(key_range(keys.begin, shape.all_slots, b, shape.slots[s]), g,
                  winners + winners_at(shape, b, s), gradient);
    }
  }
}

}  // namespace

void gather_many(const ManyShape& shape, const TableInput& in, const BatchKeys& keys,
                 const Tensor& out, float* line, uint32_t* winners) {
  if (keys.values != nullptr) return gather<true>(shape, in, keys, out, line, winners);
  gather<false>(shape, in, keys, out, line, winners);
}

void scatter_many(const ManyShape& shape, const TableInput& in, const BatchKeys& keys,
                  const Tensor& out_gradient, float* line, const uint32_t* winners,
                  uint32_t first_row, uint32_t end_row, float* gradient) {
  const auto& way = keys.values != nullptr ? scatter<true> : scatter<false>;
  way(shape, in, keys, out_gradient, line, winners, first_row, end_row, gradient);
}

}  // namespace flux
