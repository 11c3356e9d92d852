#include "flux/data/parquet/writer.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

using parquet_plugin::As;
using parquet_plugin::kErrorBytes;

constexpr uint64_t kGroupRows = 32 << 10;
constexpr const char* kValuesSuffix = "_values";

// Readers find columns by their names.
Status check_column_names(const RecordSchema& schema) {
  std::map<std::string, std::string> whose;  // of each column
  const auto add = [&](const std::string& column, const std::string& what) -> Status {
    const auto [at, is_new] = whose.try_emplace(column, what);
    if (is_new) return Status::ok();
    return invalid(
        "--to parquet: the format cannot hold {} beside {}: both would be the column '{}'; rename "
        "one of them, or write another format",
        what, at->second, column);
  };
  for (const std::string& name : schema.labels)
    FLUX_RETURN_IF_ERROR(add(name, fmt::format("the label '{}'", name)));
  if (schema.weights) FLUX_RETURN_IF_ERROR(add("weight", "the weights of examples"));
  if (schema.groups) FLUX_RETURN_IF_ERROR(add("sid", "the groups (data.group)"));
  for (const std::string& name : schema.dense)
    FLUX_RETURN_IF_ERROR(add(name, fmt::format("the dense feature '{}'", name)));
  for (const std::string& name : schema.slots)
    FLUX_RETURN_IF_ERROR(add(name, fmt::format("the slot '{}'", name)));
  for (const std::string& name : schema.values ? schema.slots : std::vector<std::string>())
    FLUX_RETURN_IF_ERROR(add(name + kValuesSuffix, fmt::format("the values of slot '{}'", name)));
  return Status::ok();
}

Status sync_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  return flushed ? Status::ok() : error(Code::kIo, "{}: cannot be flushed", path);
}

}  // namespace

ParquetWriter::ParquetWriter(std::string path, RecordSchema schema, const parquet_plugin::Api* api)
    : path_(std::move(path)),
      temporary_(path_ + std::string(kTemporarySuffix)),
      schema_(std::move(schema)),
      api_(api) {
  for (const std::string& name : schema_.labels) add_column(name, As::kNumbers, false);
  if (schema_.weights) add_column("weight", As::kNumbers, false);
  if (schema_.groups) add_column("sid", As::kKeys, false);
  for (const std::string& name : schema_.dense) add_column(name, As::kNumbers, false);
  for (const std::string& name : schema_.slots) {
    add_column(name, As::kKeys, schema_.many_keys);
    if (schema_.values) add_column(name + kValuesSuffix, As::kNumbers, schema_.many_keys);
  }
}

void ParquetWriter::add_column(const std::string& name, As as, bool many) {
  columns_.push_back({name, as, many, {}, {}, {0}});
}

Result<std::unique_ptr<ParquetWriter>> ParquetWriter::create(const std::string& path,
                                                             const RecordSchema& schema) {
  FLUX_RETURN_IF_ERROR(check_column_names(schema));
  FLUX_ASSIGN_OR_RETURN(const auto* api, load_parquet_plugin());
  std::unique_ptr<ParquetWriter> out(new ParquetWriter(path, schema, api));
  std::vector<parquet_plugin::NewColumn> columns;
  for (const Column& column : out->columns_)
    columns.push_back({column.name.c_str(), column.as, column.many});
  char reason[kErrorBytes] = {};
  out->handle_ = api->create(out->temporary_.c_str(), columns.data(),
                             static_cast<uint32_t>(columns.size()), reason);
  if (out->handle_ == nullptr)
    return error(Code::kIo, "{}: cannot be created: {}", out->temporary_, reason);
  return out;
}

ParquetWriter::~ParquetWriter() {
  if (handle_ == nullptr) return;
  api_->destroy(handle_);
  std::remove(temporary_.c_str());
}

void ParquetWriter::add_numbers(const Batch& batch) {
  size_t at = 0;
  for (size_t l = 0; l < schema_.labels.size(); ++l) {
    const auto begin = batch.labels.begin() + static_cast<ptrdiff_t>(l * batch.size);
    columns_[at].numbers.insert(columns_[at].numbers.end(), begin, begin + batch.size);
    ++at;
  }
  if (schema_.weights) {
    std::vector<float>& to = columns_[at++].numbers;
    to.insert(to.end(), batch.weights.begin(), batch.weights.end());
  }
  if (schema_.groups) {
    std::vector<uint64_t>& to = columns_[at++].keys;
    to.insert(to.end(), batch.groups.begin(), batch.groups.end());
  }
  for (uint32_t d = 0; d < batch.dense; ++d, ++at)
    for (uint32_t i = 0; i < batch.size; ++i)
      columns_[at].numbers.push_back(batch.dense_values[size_t{i} * batch.dense + d]);
}

void ParquetWriter::add_keys(const Batch& batch) {
  const size_t per_slot = schema_.values ? 2 : 1;
  const size_t first = columns_.size() - schema_.slots.size() * per_slot;
  for (uint32_t i = 0; i < batch.size; ++i)
    for (uint32_t s = 0; s < batch.slots; ++s) {
      const size_t place = size_t{i} * batch.slots + s;
      const size_t from = batch.begin.empty() ? place : batch.begin[place];
      const size_t to = batch.begin.empty() ? place + 1 : batch.begin[place + 1];
      Column& keys = columns_[first + s * per_slot];
      for (size_t k = from; k < to; ++k) keys.keys.push_back(batch.keys[k]);
      keys.begin.push_back(static_cast<uint32_t>(keys.keys.size()));
      if (!schema_.values) continue;
      Column& values = columns_[first + s * per_slot + 1];
      for (size_t k = from; k < to; ++k)
        values.numbers.push_back(batch.values.empty() ? 1.0F : batch.values[k]);
      values.begin.push_back(static_cast<uint32_t>(values.numbers.size()));
    }
}

Status ParquetWriter::add(const Batch& batch) {
  add_numbers(batch);
  add_keys(batch);
  rows_ += batch.size;
  return rows_ >= kGroupRows ? flush() : Status::ok();
}

Status ParquetWriter::flush() {
  if (rows_ == 0) return Status::ok();
  std::vector<parquet_plugin::Values> values;
  for (const Column& column : columns_)
    values.push_back(
        {column.keys.data(), column.numbers.data(), column.many ? column.begin.data() : nullptr});
  char reason[kErrorBytes] = {};
  if (!api_->write(handle_, rows_, values.data(), reason))
    return error(Code::kIo, "{}: cannot be written: {}", temporary_, reason);
  for (Column& column : columns_) {
    column.keys.clear();
    column.numbers.clear();
    column.begin.resize(1);
  }
  rows_ = 0;
  return Status::ok();
}

Status ParquetWriter::finish() {
  FLUX_RETURN_IF_ERROR(flush());
  char reason[kErrorBytes] = {};
  if (!api_->finish(handle_, reason))
    return error(Code::kIo, "{}: cannot be written: {}", temporary_, reason);
  FLUX_RETURN_IF_ERROR(sync_file(temporary_));
  std::error_code failed;
  bytes_ = std::filesystem::file_size(temporary_, failed);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return error(Code::kIo, "{}: cannot be put in place", path_);
  api_->destroy(std::exchange(handle_, nullptr));
  return sync_folder(parent_folder(path_));
}

}  // namespace flux
