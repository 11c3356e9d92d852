#include "plugins/parquet/zstd_pages.h"

#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <arrow/buffer.h>
#include <parquet/column_page.h>
#include <parquet/exception.h>
#include <parquet/metadata.h>

namespace flux::parquet_plugin {
namespace {

constexpr int64_t kAtOnceBytes = 1 << 20;  // a column of a row group that is read in one go

using ::arrow::Buffer;
using ::parquet::DataPageV1;
using ::parquet::DataPageV2;
using ::parquet::DictionaryPage;
using ::parquet::Page;
using ::parquet::PageReader;
using ::parquet::ParquetException;

// `packed` gives the pages as they lie in the file.
class ZstdPages final : public PageReader {
 public:
  ZstdPages(std::unique_ptr<PageReader> packed, ZstdDecoder decoder, ::arrow::MemoryPool* pool)
      : packed_(std::move(packed)), decoder_(std::move(decoder)) {
    PARQUET_ASSIGN_OR_THROW(unpacked_, ::arrow::AllocateResizableBuffer(0, pool));
  }

  void set_max_page_header_size(uint32_t size) override { packed_->set_max_page_header_size(size); }

  // What it returns is valid until the next call.
  std::shared_ptr<Page> NextPage() override {
    std::shared_ptr<Page> page = packed_->NextPage();
    if (page == nullptr) return page;
    switch (page->type()) {
      case ::parquet::PageType::DICTIONARY_PAGE:
        return unpack_dictionary(static_cast<const DictionaryPage&>(*page));
      case ::parquet::PageType::DATA_PAGE:
        return unpack_first(static_cast<const DataPageV1&>(*page));
      case ::parquet::PageType::DATA_PAGE_V2:
        return unpack_second(std::move(page));
      default:
        return page;
    }
  }

 private:
  [[noreturn]] static void damaged(const std::string& what) {
    throw ParquetException("a page packed with zstd is damaged: " + what);
  }

  // Unpacks `from` behind the first `plain` bytes, which are there already.
  std::shared_ptr<Buffer> unpack(const uint8_t* from, int64_t bytes, int64_t plain, int64_t size) {
    const int64_t room = size - plain;
    const size_t got =
        ZSTD_decompressDCtx(decoder_.get(), unpacked_->mutable_data() + plain,
                            static_cast<size_t>(room), from, static_cast<size_t>(bytes));
    if (ZSTD_isError(got) != 0) damaged(ZSTD_getErrorName(got));
    if (got != static_cast<size_t>(room))
      damaged(std::to_string(got) + " bytes where " + std::to_string(room) + " are announced");
    return ::arrow::SliceBuffer(unpacked_, 0, size);
  }

  void make_room(int64_t size) {
    if (size < 0 || size > std::numeric_limits<int32_t>::max()) damaged("its size");
    if (unpacked_->size() < size) PARQUET_THROW_NOT_OK(unpacked_->Resize(size, false));
  }

  // A dictionary's own size is not told, so it is asked of the frame.
  std::shared_ptr<Page> unpack_dictionary(const DictionaryPage& page) {
    const auto size = ZSTD_getFrameContentSize(page.data(), static_cast<size_t>(page.size()));
    if (size == ZSTD_CONTENTSIZE_ERROR) damaged("no frame");
    if (size == ZSTD_CONTENTSIZE_UNKNOWN) return unpack_unsized(page);
    make_room(size > std::numeric_limits<int32_t>::max() ? -1 : static_cast<int64_t>(size));
    return dictionary(page, unpack(page.data(), page.size(), 0, static_cast<int64_t>(size)));
  }

  std::shared_ptr<Page> unpack_unsized(const DictionaryPage& page) {
    ZSTD_DCtx_reset(decoder_.get(), ZSTD_reset_session_only);
    ZSTD_inBuffer in{page.data(), static_cast<size_t>(page.size()), 0};
    make_room(64 << 10);
    ZSTD_outBuffer out{unpacked_->mutable_data(), static_cast<size_t>(unpacked_->size()), 0};
    for (size_t left = 1; left != 0;) {
      left = ZSTD_decompressStream(decoder_.get(), &out, &in);
      if (ZSTD_isError(left) != 0) damaged(ZSTD_getErrorName(left));
      if (left == 0) break;
      if (out.pos < out.size) damaged("it ends early");
      make_room(2 * unpacked_->size());
      out.dst = unpacked_->mutable_data();
      out.size = static_cast<size_t>(unpacked_->size());
    }
    return dictionary(page, ::arrow::SliceBuffer(unpacked_, 0, static_cast<int64_t>(out.pos)));
  }

  static std::shared_ptr<Page> dictionary(const DictionaryPage& page,
                                          const std::shared_ptr<Buffer>& buffer) {
    return std::make_shared<DictionaryPage>(buffer, page.num_values(), page.encoding(),
                                            page.is_sorted());
  }

  // Levels and values are packed together.
  std::shared_ptr<Page> unpack_first(const DataPageV1& page) {
    const int64_t size = page.uncompressed_size();
    make_room(size);
    return std::make_shared<DataPageV1>(unpack(page.data(), page.size(), 0, size),
                                        page.num_values(), page.encoding(),
                                        page.definition_level_encoding(),
                                        page.repetition_level_encoding(), size, page.statistics());
  }

  // Levels are not packed, values may be.
  std::shared_ptr<Page> unpack_second(std::shared_ptr<Page> given) {
    const auto& page = static_cast<const DataPageV2&>(*given);
    if (!page.is_compressed()) return given;
    const int64_t size = page.uncompressed_size();
    const int64_t levels =
        int64_t{page.definition_levels_byte_length()} + page.repetition_levels_byte_length();
    if (levels < 0 || levels > page.size() || levels > size) damaged("its levels");
    make_room(size);
    std::memcpy(unpacked_->mutable_data(), page.data(), static_cast<size_t>(levels));
    const auto buffer = levels == size
                            ? ::arrow::SliceBuffer(unpacked_, 0, size)
                            : unpack(page.data() + levels, page.size() - levels, levels, size);
    return std::make_shared<DataPageV2>(
        buffer, page.num_values(), page.num_nulls(), page.num_rows(), page.encoding(),
        page.definition_levels_byte_length(), page.repetition_levels_byte_length(), size, false,
        page.statistics());
  }

  const std::unique_ptr<PageReader> packed_;
  const ZstdDecoder decoder_;
  std::shared_ptr<::arrow::ResizableBuffer> unpacked_;
};

}  // namespace

ZstdDecoder make_zstd_decoder() {
  ZstdDecoder out(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (out == nullptr) throw ParquetException("no memory for a decoder of zstd");
  return out;
}

std::unique_ptr<PageReader> open_pages(::parquet::RowGroupReader* group, int leaf,
                                       const std::shared_ptr<::arrow::io::RandomAccessFile>& source,
                                       ::parquet::ReaderProperties properties,
                                       const ZstdDecoder& decoder) {
  const auto column = group->metadata()->ColumnChunk(leaf);
  if (column->compression() != ::parquet::Compression::ZSTD || column->crypto_metadata())
    return group->GetColumnPageReader(leaf);
  int64_t begin = column->data_page_offset();
  if (column->has_dictionary_page() && column->dictionary_page_offset() > 0 &&
      column->dictionary_page_offset() < begin)
    begin = column->dictionary_page_offset();
  PARQUET_ASSIGN_OR_THROW(const int64_t size, source->GetSize());
  const int64_t bytes = column->total_compressed_size();
  if (begin < 0 || bytes < 0 || begin > size || bytes > size - begin)
    throw ParquetException("a column lies outside of the file");
  if (bytes <= kAtOnceBytes) properties.disable_buffered_stream();
  const ::parquet::ColumnDescriptor* descr = group->metadata()->schema()->Column(leaf);
  auto packed = PageReader::Open(properties.GetStream(source, begin, bytes), column->num_values(),
                                 ::parquet::Compression::UNCOMPRESSED, properties, *descr);
  return std::make_unique<ZstdPages>(std::move(packed), decoder, properties.memory_pool());
}

}  // namespace flux::parquet_plugin
