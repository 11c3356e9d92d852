// ParquetWriter: examples to a Parquet file, which appears under its name when finish() has
// succeeded.
//
// Columns: labels, `weight`, `sid` (groups), dense features, and for each slot its keys as the
// tables have them (a number in each row, or a list) and NAME_values. Memory: one row group.
// Threads: one. Failure: kInvalid without the plug-in, or where two columns would have one name;
// kIo with path and reason.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/batch.h"
#include "flux/data/blocks/record_schema.h"
#include "flux/data/parquet/plugin.h"

namespace flux {

class ParquetWriter {
 public:
  static Result<std::unique_ptr<ParquetWriter>> create(const std::string& path,
                                                       const RecordSchema& schema);
  ~ParquetWriter();
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;

  // Every example of a batch that has the shape of the schema.
  Status add(const Batch& batch);
  Status finish();  // to be called once, last
  uint64_t bytes() const { return bytes_; }

 private:
  // The row group under construction.
  struct Column {
    std::string name;
    parquet_plugin::As as;
    bool many;
    std::vector<uint64_t> keys;
    std::vector<float> numbers;
    std::vector<uint32_t> begin;  // of each row's values, and the end of the last
  };
  ParquetWriter(std::string path, RecordSchema schema, const parquet_plugin::Api* api);
  void add_column(const std::string& name, parquet_plugin::As as, bool many);
  void add_numbers(const Batch& batch);
  void add_keys(const Batch& batch);
  Status flush();

  const std::string path_, temporary_;
  const RecordSchema schema_;
  const parquet_plugin::Api* const api_;
  parquet_plugin::Writer* handle_ = nullptr;
  std::vector<Column> columns_;
  uint64_t rows_ = 0, bytes_ = 0;
};

}  // namespace flux
