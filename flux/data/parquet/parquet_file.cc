#include "flux/data/parquet/parquet_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "flux/base/hash.h"
#include "flux/data/key_names.h"

namespace flux {
namespace {

using parquet_plugin::kErrorBytes;

constexpr char kMagic[] = {'P', 'A', 'R', '1'};
constexpr uint64_t kFooterBytesMax = 64 << 20;

uint64_t hash_text(const char* text, uint64_t size) {
  return text_key({text, size});
}

// Arrow's reason in one line.
Status corrupt(const std::string& path, std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  return error(Code::kCorrupt, "{}: Parquet data is damaged: {}; copy it again, or write it anew",
               path, reason);
}

}  // namespace

bool ParquetFile::looks_like_one(const ReadFile& file) {
  char magic[sizeof kMagic] = {};
  return file.size() >= sizeof kMagic && file.read_at(0, magic, sizeof magic).is_ok() &&
         std::memcmp(magic, kMagic, sizeof magic) == 0;
}

Result<std::shared_ptr<const ParquetFile>> ParquetFile::open(const std::string& path) {
  FLUX_ASSIGN_OR_RETURN(ReadFile file, ReadFile::open(path));
  if (!looks_like_one(file))
    return invalid(
        "{}: is no Parquet file: it does not begin with PAR1; name its format in data.format",
        path);
  FLUX_ASSIGN_OR_RETURN(const auto* api, load_parquet_plugin());
  std::shared_ptr<ParquetFile> out(new ParquetFile(std::move(file), api));
  FLUX_RETURN_IF_ERROR(out->hash_footer());
  char reason[kErrorBytes] = {};
  out->handle_ = api->open(path.c_str(), reason);
  if (out->handle_ == nullptr) return corrupt(path, reason);
  FLUX_RETURN_IF_ERROR(out->look_around());
  return std::shared_ptr<const ParquetFile>(std::move(out));
}

Status ParquetFile::hash_footer() {
  char tail[8] = {};  // length of the footer, magic
  const uint64_t size = file_.size();
  if (size < 12) return corrupt(path(), "it ends within its head");
  FLUX_RETURN_IF_ERROR(file_.read_at(size - sizeof tail, tail, sizeof tail));
  if (std::memcmp(tail + 4, kMagic, sizeof kMagic) != 0)
    return corrupt(path(), "it does not end with PAR1: it was cut, or is being written");
  uint32_t bytes = 0;
  std::memcpy(&bytes, tail, sizeof bytes);
  if (bytes > size - 12 || bytes > kFooterBytesMax)
    return corrupt(path(), fmt::format("a footer of {} bytes", bytes));
  std::string footer(bytes, '\0');
  FLUX_RETURN_IF_ERROR(file_.read_at(size - sizeof tail - bytes, footer.data(), bytes));
  content_ = hash_bytes(footer);
  return Status::ok();
}

Status ParquetFile::look_around() {
  constexpr uint64_t kRowsMax = 1ULL << 62;  // less than can be added up
  rows_ = api_->rows(handle_);
  own_ = api_->is_own(handle_);
  uint64_t sum = 0;
  for (uint32_t group = 0; group < api_->groups(handle_); ++group) {
    const uint64_t rows = api_->group_rows(handle_, group);
    if (rows > kRowsMax - sum)
      return corrupt(path(), fmt::format("row group {} of {} rows", group + 1, rows));
    sum += rows;
    group_rows_most_ = std::max(group_rows_most_, rows);
  }
  if (rows_ != sum)
    return corrupt(path(), fmt::format("its footer says {} rows, its row groups have {}",
                                       static_cast<int64_t>(rows_), sum));
  for (uint32_t column = 0; column < api_->columns(handle_); ++column)
    columns_.push_back(api_->column(handle_, column));
  return Status::ok();
}

ParquetFile::~ParquetFile() {
  if (handle_ != nullptr) api_->close(handle_);
}

Result<std::unique_ptr<ParquetCursor>> ParquetCursor::start(
    std::shared_ptr<const ParquetFile> file, const std::vector<parquet_plugin::Wanted>& wanted,
    uint64_t row) {
  std::unique_ptr<ParquetCursor> out(new ParquetCursor(std::move(file), row));
  char reason[kErrorBytes] = {};
  const ParquetFile& in = *out->file_;
  out->columns_ = wanted.size();
  out->handle_ = in.api_->start(in.handle_, wanted.data(), static_cast<uint32_t>(wanted.size()),
                                row, hash_text, reason);
  if (out->handle_ == nullptr)
    return corrupt(in.path(), fmt::format("on the way to record {}: {}", row + 1, reason));
  return out;
}

ParquetCursor::~ParquetCursor() {
  if (handle_ != nullptr) file_->api_->end(handle_);
}

Status ParquetCursor::read(uint32_t rows, ParquetColumns* out) {
  char reason[kErrorBytes] = {};
  out->rows_ = 0;
  out->values_.resize(columns_);
  if (!file_->api_->read(handle_, rows, out->memory_, out->values_.data(), reason))
    return corrupt(file_->path(),
                   fmt::format("in records {} to {}: {}", row_ + 1, row_ + rows, reason));
  out->rows_ = rows;
  row_ += rows;
  return Status::ok();
}

ParquetColumns::ParquetColumns(const ParquetFile& file)
    : api_(file.api_), memory_(file.api_->make_memory()) {
  FLUX_CHECK(memory_ != nullptr, "no memory for the columns of {}", file.path());
}

ParquetColumns::~ParquetColumns() {
  api_->free_memory(memory_);
}

}  // namespace flux
