// FileWriter: a Parquet file in row groups, as `flux data convert --to parquet` writes it.
//
// Threads: one. Failure: exceptions of Arrow, which stop at plugin.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <parquet/file_writer.h>

#include "flux/data/parquet/plugin_api.h"

namespace flux::parquet_plugin {

constexpr const char* kOwnNote = "flux.keys";  // in the notes of files that are written here

class FileWriter {
 public:
  FileWriter(const std::string& path, const NewColumn* columns, uint32_t count);
  // One row group.
  void write(uint64_t rows, const Values* values);
  void finish();

 private:
  struct Column {
    As as;
    bool many;
  };
  std::vector<Column> columns_;
  std::shared_ptr<::arrow::io::OutputStream> out_;
  std::unique_ptr<::parquet::ParquetFileWriter> file_;
  std::vector<int16_t> def_, rep_;
};

}  // namespace flux::parquet_plugin
