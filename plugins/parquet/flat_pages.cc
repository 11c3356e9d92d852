#include "plugins/parquet/flat_pages.h"

#include <cstring>

namespace flux::parquet_plugin {
namespace {

[[noreturn]] void damaged() {
  throw ::parquet::ParquetException("a page is damaged: its levels are larger than it");
}

PageParts split_first(const ::parquet::DataPageV1& page, int16_t most_def,
                      ::parquet::LevelDecoder* levels) {
  PageParts out{nullptr, 0, page.data(), page.size()};
  if (most_def == 0) return out;
  const int bytes = levels->SetData(page.definition_level_encoding(), most_def, page.num_values(),
                                    page.data(), page.size());
  if (bytes < 0 || bytes > page.size()) damaged();
  constexpr int kLength = 4;  // stands before the runs
  if (page.definition_level_encoding() == ::parquet::Encoding::RLE && bytes >= kLength) {
    out.levels = page.data() + kLength;
    out.level_bytes = static_cast<size_t>(bytes - kLength);
  }
  out.values += bytes;
  out.value_bytes -= bytes;
  return out;
}

PageParts split_second(const ::parquet::DataPageV2& page, int16_t most_def,
                       ::parquet::LevelDecoder* levels) {
  const int64_t rep = page.repetition_levels_byte_length();
  const int64_t def = page.definition_levels_byte_length();
  if (rep < 0 || def < 0 || rep + def > page.size()) damaged();
  const uint8_t* const begin = page.data() + rep;
  if (most_def > 0)
    levels->SetDataV2(static_cast<int32_t>(def), most_def, page.num_values(), begin);
  return {begin, static_cast<size_t>(def), begin + def, static_cast<int>(page.size() - rep - def)};
}

}  // namespace

bool one_run_of(const uint8_t* data, size_t size, int16_t level, int64_t count) {
  uint64_t head = 0;
  for (size_t i = 0; i < size && i < 5; ++i) {
    head |= uint64_t{data[i] & 0x7fU} << (7 * i);
    if ((data[i] & 0x80U) != 0) continue;
    const bool repeated = (head & 1) == 0 && head >> 1 >= static_cast<uint64_t>(count);
    return repeated && level < 256 && i + 1 < size && data[i + 1] == level;
  }
  return false;
}

PageParts split_page(const ::parquet::DataPage& page, int16_t most_def,
                     ::parquet::LevelDecoder* levels) {
  if (page.type() == ::parquet::PageType::DATA_PAGE)
    return split_first(static_cast<const ::parquet::DataPageV1&>(page), most_def, levels);
  return split_second(static_cast<const ::parquet::DataPageV2&>(page), most_def, levels);
}

}  // namespace flux::parquet_plugin
