// ParquetFile: a Parquet file that is open, its columns, and rows of it.
//
// Threads: immutable, shared by all; a ParquetCursor and ParquetColumns that are being read into
// belong to one thread at a time.
// Failure: kNotFound / kIo; kInvalid when the plug-in is missing or the file is no Parquet file;
// kCorrupt with the path and Arrow's reason.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/parquet/plugin.h"
#include "flux/storage/read_file.h"

namespace flux {

class ParquetFile {
 public:
  static Result<std::shared_ptr<const ParquetFile>> open(const std::string& path);
  // Does the file begin as a Parquet file does?
  static bool looks_like_one(const ReadFile& file);
  ~ParquetFile();
  ParquetFile(const ParquetFile&) = delete;
  ParquetFile& operator=(const ParquetFile&) = delete;

  const std::string& path() const { return file_.path(); }
  const ReadFile& file() const { return file_; }
  const std::vector<parquet_plugin::Column>& columns() const { return columns_; }
  uint64_t rows() const { return rows_; }
  uint64_t group_rows_most() const { return group_rows_most_; }  // of a row group
  bool is_own() const { return own_; }           // written by flux: its keys are those of tables
  uint64_t content() const { return content_; }  // hash of the footer, which tells files apart

 private:
  friend class ParquetColumns;
  friend class ParquetCursor;
  ParquetFile(ReadFile file, const parquet_plugin::Api* api) : file_(std::move(file)), api_(api) {}
  Status hash_footer();
  Status look_around();

  ReadFile file_;
  const parquet_plugin::Api* const api_;
  parquet_plugin::File* handle_ = nullptr;
  std::vector<parquet_plugin::Column> columns_;
  bool own_ = false;
  uint64_t rows_ = 0, group_rows_most_ = 0, content_ = 0;
};

// The wanted columns of some rows, in memory of the plug-in, which is used again by the next read.
class ParquetColumns {
 public:
  explicit ParquetColumns(const ParquetFile& file);
  ~ParquetColumns();
  ParquetColumns(const ParquetColumns&) = delete;
  ParquetColumns& operator=(const ParquetColumns&) = delete;

  uint32_t rows() const { return rows_; }
  // One for each wanted column.
  const parquet_plugin::Values* values() const { return values_.data(); }

 private:
  friend class ParquetCursor;
  const parquet_plugin::Api* const api_;
  parquet_plugin::Memory* const memory_;
  std::vector<parquet_plugin::Values> values_;
  uint32_t rows_ = 0;
};

class ParquetCursor {
 public:
  static Result<std::unique_ptr<ParquetCursor>> start(
      std::shared_ptr<const ParquetFile> file, const std::vector<parquet_plugin::Wanted>& wanted,
      uint64_t row);
  ~ParquetCursor();
  ParquetCursor(const ParquetCursor&) = delete;
  ParquetCursor& operator=(const ParquetCursor&) = delete;

  uint64_t row() const { return row_; }
  // The next rows.
  Status read(uint32_t rows, ParquetColumns* out);

 private:
  ParquetCursor(std::shared_ptr<const ParquetFile> file, uint64_t row)
      : file_(std::move(file)), row_(row) {}
  const std::shared_ptr<const ParquetFile> file_;
  parquet_plugin::Cursor* handle_ = nullptr;
  size_t columns_ = 0;  // that are wanted
  uint64_t row_;
};

}  // namespace flux
