#include "flux/table/dense_shard.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "flux/base/bytes.h"
#include "flux/base/hash.h"

namespace flux {
namespace {
constexpr size_t kHeaderBytes = 3 * sizeof(uint64_t);

size_t state_size(const std::vector<DensePiece>& pieces) {
  size_t floats = 0;
  for (const DensePiece& piece : pieces) floats += piece.rule->state_size(piece.size);
  return floats;
}
}  // namespace

DenseShard::DenseShard(std::vector<DensePiece> pieces, size_t offset, size_t size)
    : offset_(offset),
      size_(size),
      pieces_(std::move(pieces)),
      floats_(size + state_size(pieces_)) {
  floats_.fill(0.0F);
  init_state();
}
DenseShard::DenseShard(const DenseRules& rules, size_t offset, size_t size)
    : DenseShard(rules.pieces(offset, size), offset, size) {}
DenseShard::DenseShard(const Optimizer* rule, size_t offset, size_t size)
    : DenseShard(std::vector<DensePiece>{{rule, size, 1}}, offset, size) {}

void DenseShard::init_state() {
  float* state = floats_.data() + size_;
  for (const DensePiece& piece : pieces_) {
    piece.rule->init_state(state, piece.size);
    state += piece.rule->state_size(piece.size);
  }
}

void DenseShard::init(std::span<const float> values) {
  FLUX_CHECK(values.size() == size_, "{} values for a dense shard of {}", values.size(), size_);
  std::copy(values.begin(), values.end(), floats_.data());
  init_state();
  examples_ = 0;
}

void DenseShard::pull(float* out) const {
  std::copy_n(floats_.data(), size_, out);
}

void DenseShard::push(const float* gradient, uint64_t examples, float lr_scale) {
  float* weights = floats_.data();
  float* state = weights + size_;
  for (const DensePiece& piece : pieces_) {
    piece.rule->update(weights, state, gradient, piece.size, lr_scale * piece.lr_scale);
    weights += piece.size;
    gradient += piece.size;
    state += piece.rule->state_size(piece.size);
  }
  examples_ += examples;
}

size_t DenseShard::saved_bytes() const {
  return kHeaderBytes + floats_.size() * sizeof(float);
}

void DenseShard::save(std::string* out) const {
  const std::array<uint64_t, 3> header = {offset_, size_, examples_};
  out->reserve(out->size() + saved_bytes());
  out->append(reinterpret_cast<const char*>(header.data()), kHeaderBytes);
  const auto bytes = std::as_bytes(floats_.span());
  out->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status DenseShard::load(std::string_view saved) {
  if (saved.size() != saved_bytes()) {
    return error(Code::kCorrupt, "saved dense shard: {} bytes where {} are expected", saved.size(),
                 saved_bytes());
  }
  ByteReader reader(saved);
  const auto offset = reader.get<uint64_t>();
  const auto size = reader.get<uint64_t>();
  if (offset != offset_ || size != size_) {
    return error(Code::kCorrupt,
                 "saved dense shard: {} parameters from {} where {} from {} are expected", size,
                 offset, size_, offset_);
  }
  examples_ = reader.get<uint64_t>();
  if (floats_.size() > 0) {
    std::memcpy(floats_.data(), saved.data() + kHeaderBytes, floats_.size() * sizeof(float));
  }
  return Status::ok();
}

uint64_t DenseShard::content_hash() const {
  const std::array<uint64_t, 3> header = {offset_, size_, examples_};
  return hash_span<float>(floats_.span(), hash_bytes(header.data(), kHeaderBytes));
}

}  // namespace flux
