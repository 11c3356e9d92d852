#include "plugins/parquet/index_decoder.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <immintrin.h>
#include <parquet/exception.h>

namespace flux::parquet_plugin {
namespace {

constexpr uint32_t kWidthMax = 32;
constexpr uint32_t kAtOnceWidthMax = 25;  // with up to 7 bits before it, an index is in 4 bytes
constexpr size_t kLoadBytes = 16;

[[noreturn]] void damaged(const char* what) {
  throw ::parquet::ParquetException(std::string("indices into a dictionary are damaged: ") + what);
}

uint32_t mask_of(uint32_t width) {
  return static_cast<uint32_t>((uint64_t{1} << width) - 1);
}

}  // namespace

void IndexDecoder::reset(const uint8_t* data, size_t size) {
  at_ = data;
  end_ = data + size;
  repeats_ = groups_ = 0;
  taken_ = filled_ = 0;
  width_ = 0;
  if (size == 0) return;  // a page of nulls
  width_ = *at_++;
  if (width_ > kWidthMax) damaged("their width");
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t bit = i * width_ - (i < 4 ? 0 : width_ / 2 * 8);  // of its half
    shifts_[i] = bit % 8;
    for (uint32_t byte = 0; byte < 4; ++byte)
      bytes_[i * 4 + byte] = static_cast<uint8_t>(bit / 8 + byte);
  }
}

std::span<const uint32_t> IndexDecoder::next(size_t most) {
  if (taken_ == filled_) refill();
  const size_t count = std::min(most, filled_ - taken_);
  const std::span<const uint32_t> out(indices_.data() + taken_, count);
  taken_ += count;
  return out;
}

// A head: its last bit tells packed indices from a repeated one, the others count.
void IndexDecoder::begin_run() {
  uint64_t head = 0;
  for (uint32_t bit = 0;; bit += 7) {
    if (at_ == end_) damaged("there are too few");
    if (bit > 28) damaged("the head of a run");
    head |= uint64_t{*at_ & 0x7fU} << bit;
    if ((*at_++ & 0x80U) == 0) break;
  }
  if ((head & 1) != 0) {
    groups_ = head >> 1;
    return;
  }
  const size_t bytes = (width_ + 7) / 8;
  if (static_cast<size_t>(end_ - at_) < bytes) damaged("there are too few");
  repeated_ = 0;
  std::memcpy(&repeated_, at_, bytes);
  at_ += bytes;
  repeats_ = head >> 1;
}

void IndexDecoder::refill() {
  while (repeats_ == 0 && groups_ == 0) begin_run();
  taken_ = 0;
  if (repeats_ > 0) {
    filled_ = static_cast<size_t>(std::min<uint64_t>(repeats_, kAtOnce));
    std::fill_n(indices_.begin(), filled_, repeated_);
    repeats_ -= filled_;
    return;
  }
  const auto groups = static_cast<size_t>(std::min<uint64_t>(groups_, kAtOnce / 8));
  unpack(groups);
  groups_ -= groups;
  filled_ = groups * 8;
}

void IndexDecoder::unpack(size_t groups) {
  uint32_t* out = indices_.data();
  if (width_ <= kAtOnceWidthMax) {
    // As many as can be loaded without reading behind the end.
    const auto left = static_cast<size_t>(end_ - at_);
    const size_t loaded = width_ / 2 + kLoadBytes;
    const size_t fit = width_ == 0 ? groups : left < loaded ? 0 : (left - loaded) / width_ + 1;
    const size_t fast = left < loaded ? 0 : std::min(groups, fit);
    unpack_at_once(fast, out);
    at_ += fast * width_;
    out += fast * 8;
    groups -= fast;
  }
  for (; groups > 0; --groups, out += 8) {
    if (at_ == end_ && width_ > 0) damaged("there are too few");
    unpack_one_by_one(out);
    at_ += std::min<size_t>(width_, static_cast<size_t>(end_ - at_));
  }
}

// Eight indices are `width` bytes. The last of a page may be cut: what lacks is 0.
void IndexDecoder::unpack_one_by_one(uint32_t* out) const {
  uint8_t bytes[kWidthMax + 8] = {};
  std::memcpy(bytes, at_, std::min<size_t>(width_, static_cast<size_t>(end_ - at_)));
  for (uint32_t i = 0; i < 8; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i * width_ / 8, sizeof word);
    out[i] = static_cast<uint32_t>(word >> (i * width_ % 8)) & mask_of(width_);
  }
}

void IndexDecoder::unpack_at_once(size_t groups, uint32_t* out) const {
  const __m256i bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes_.data()));
  const __m256i shifts = _mm256_load_si256(reinterpret_cast<const __m256i*>(shifts_.data()));
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(mask_of(width_)));
  const uint8_t* from = at_;
  for (size_t i = 0; i < groups; ++i, from += width_, out += 8) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + width_ / 2));
    const __m256i words = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), bytes);
    const __m256i indices = _mm256_and_si256(_mm256_srlv_epi32(words, shifts), mask);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), indices);
  }
}

}  // namespace flux::parquet_plugin
