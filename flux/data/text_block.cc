#include "flux/data/text_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <immintrin.h>

#include "flux/base/text.h"
#include "flux/data/lines.h"

namespace flux {

TextBlock::TextBlock(TextBlockPlace place, std::shared_ptr<BufferPool> pool)
    : place_(std::move(place)),
      pool_(std::move(pool)),
      text_(pool_->take(place_.block.end - place_.block.begin + kSlack)) {
  std::memset(text_.data() + (place_.block.end - place_.block.begin), 0, kSlack);
}

TextBlock::~TextBlock() {
  pool_->give(std::move(text_));
}

Status TextBlock::prepare(std::vector<uint32_t> order) {
  const DataBlock& block = place_.block;
  order_ = std::move(order);
  const uint64_t expected = block.lines();
  begins_.resize(expected + 1);
  const size_t lines = index_lines(text_.data(), static_cast<uint32_t>(block.end - block.begin),
                                   expected, begins_.data());
  if (lines != expected)
    return invalid(
        "{}: bytes {} to {} hold {} lines where the scan found {}: the file "
        "has changed since; start afresh to scan it again",
        place_.path, block.begin, block.end, lines > expected ? "more" : std::to_string(lines),
        expected);
  return Status::ok();
}

std::span<const uint32_t> TextBlock::records_of(uint32_t batch) const {
  const uint64_t begin = uint64_t{batch} * place_.batch_size;
  FLUX_CHECK(begin < order_.size(), "batch {} of a block of {} records", batch, order_.size());
  return std::span(order_).subspan(begin,
                                   std::min<uint64_t>(place_.batch_size, order_.size() - begin));
}

Status TextBlock::refuse(uint32_t record, size_t column, const std::string& what) const {
  return invalid("{}:{}:{}: {}", place_.path, place_.first_line + record, column, what);
}

void TextBlock::prefetch(std::span<const uint32_t> records, size_t position) const {
  if (position >= records.size()) return;
  const char* line = text_.data() + begins_[records[position]];
  for (int i = 0; i < 6; ++i) _mm_prefetch(line + i * 64, _MM_HINT_T0);
}

TextRange TextBlock::bytes_of(uint32_t first, uint32_t last) const {
  return {place_.block.begin + begins_[first],
          std::min<uint64_t>(place_.block.begin + begins_[last + 1], place_.block.end)};
}

std::string TextBlock::describe(uint32_t batch) const {
  if (uint64_t{batch} * place_.batch_size >= order_.size()) return "";
  const std::span<const uint32_t> records = records_of(batch);
  const auto [low, high] = std::minmax_element(records.begin(), records.end());
  const uint64_t first = place_.first_line + *low;
  const uint64_t last = place_.first_line + *high;
  const std::string which =
      last - first + 1 == records.size()
          ? fmt::format("records {} to {}", first, last)
          : fmt::format("{} of records {} to {}", records.size(), first, last);
  return place_text(place_.path, place_.packed, bytes_of(*low, *high), which);
}

std::string TextBlock::describe_example(uint32_t batch, uint32_t example) const {
  const size_t at = size_t{batch} * place_.batch_size + example;
  if (example >= place_.batch_size || at >= order_.size()) return "";
  const uint32_t record = order_[at];
  return place_text(place_.path, place_.packed, bytes_of(record, record),
                    fmt::format("record {}", place_.first_line + record));
}

}  // namespace flux
