#include "flux/table/dense_shard.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "flux/base/bytes.h"
#include "flux/base/hash.h"

namespace flux {
namespace {
constexpr size_t kHeaderBytes = 3 * sizeof(uint64_t);
}  // namespace

DenseShard::DenseShard(const Optimizer* optimizer, size_t offset, size_t size)
    : offset_(offset),
      size_(size),
      optimizer_(optimizer),
      floats_(size + optimizer->state_size(size)) {
  floats_.fill(0.0F);
  optimizer_->init_state(floats_.data() + size_, size_);
}

void DenseShard::init(std::span<const float> values) {
  FLUX_CHECK(values.size() == size_, "{} values for a dense shard of {}", values.size(), size_);
  std::copy(values.begin(), values.end(), floats_.data());
  optimizer_->init_state(floats_.data() + size_, size_);
  examples_ = 0;
}

void DenseShard::pull(float* out) const {
  std::copy_n(floats_.data(), size_, out);
}

void DenseShard::push(const float* gradient, uint64_t examples, float lr_scale) {
  optimizer_->update(floats_.data(), floats_.data() + size_, gradient, size_, lr_scale);
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
