// Pages of a column that are packed with zstd, unpacked by one decoder that is kept.
//
// Arrow makes a decoder for each page, which asks the CPU what it can do; on a virtual machine that
// question takes longer than many a page. Pages of other packings are left to Arrow.
// Threads: one. Failure: parquet::ParquetException.
#pragma once

#include <memory>

#include <arrow/io/interfaces.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <zstd.h>

namespace flux::parquet_plugin {

using ZstdDecoder = std::shared_ptr<ZSTD_DCtx>;
ZstdDecoder make_zstd_decoder();

// The pages of column `leaf` of a row group of the file `source`, from its first row on. `decoder`
// may be shared by all columns.
std::unique_ptr<::parquet::PageReader> open_pages(
    ::parquet::RowGroupReader* group, int leaf,
    const std::shared_ptr<::arrow::io::RandomAccessFile>& source,
    ::parquet::ReaderProperties properties, const ZstdDecoder& decoder);

}  // namespace flux::parquet_plugin
