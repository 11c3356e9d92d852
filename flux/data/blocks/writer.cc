#include "flux/data/blocks/writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

using block_file::ChunkHead;
using block_file::IndexEntry;

Status io_error(const std::string& path, const char* what) {
  return error(Code::kIo, "{}: cannot {}: {}", path, what, std::strerror(errno));
}

template <typename T>
void append(const T* values, size_t count, std::string* out) {
  out->append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

ChunkHead head_of(uint32_t magic, uint32_t count_bytes, uint64_t records,
                  const std::string& payload) {
  ChunkHead head;
  head.magic = magic;
  head.count_bytes = count_bytes;
  head.records = records;
  head.payload_bytes = payload.size();
  head.payload_hash = hash_bytes(payload);
  head.head_hash = head.computed_hash();
  return head;
}

}  // namespace

BlockFileWriter::BlockFileWriter(std::string path, RecordSchema schema, int file,
                                 uint32_t chunk_bytes)
    : path_(std::move(path)),
      temporary_(path_ + std::string(kTemporarySuffix)),
      schema_(std::move(schema)),
      chunk_bytes_(chunk_bytes),
      file_(file),
      keys_begin_{0} {}

BlockFileWriter::~BlockFileWriter() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

Result<std::unique_ptr<BlockFileWriter>> BlockFileWriter::create(const std::string& path,
                                                                 const RecordSchema& schema,
                                                                 uint32_t chunk_bytes) {
  const std::string temporary = path + std::string(kTemporarySuffix);
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return io_error(temporary, "create");
  std::unique_ptr<BlockFileWriter> writer(new BlockFileWriter(path, schema, file, chunk_bytes));
  const std::string json = schema.to_json();
  block_file::Head head;
  head.schema_bytes = static_cast<uint32_t>(json.size());
  head.schema_hash = hash_bytes(json);
  FLUX_RETURN_IF_ERROR(writer->write(&head, sizeof head));
  FLUX_RETURN_IF_ERROR(writer->write(json.data(), json.size()));
  return writer;
}

Status BlockFileWriter::write(const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  for (size_t left = size; left > 0;) {
    const ssize_t n = ::write(file_, at, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io_error(temporary_, "write");
    at += n;
    left -= static_cast<size_t>(n);
  }
  offset_ += size;
  return Status::ok();
}

void BlockFileWriter::add_example(const Batch& batch, uint32_t example) {
  for (size_t l = 0; l < schema_.labels.size(); ++l)
    append(&batch.labels[l * batch.size + example], 1, &fixed_);
  if (schema_.weights) append(&batch.weights[example], 1, &fixed_);
  if (schema_.groups) append(&batch.groups[example], 1, &fixed_);
  append(batch.dense_values.data() + size_t{example} * batch.dense, batch.dense, &fixed_);
  const size_t slots = batch.slots, first_slot = size_t{example} * slots;
  size_t begin = first_slot, end = first_slot + slots;
  if (schema_.many_keys) {
    begin = batch.begin[first_slot];
    end = batch.begin[first_slot + slots];
    for (size_t s = first_slot; s < first_slot + slots; ++s)
      counts_.push_back(batch.begin[s + 1] - batch.begin[s]);
  }
  keys_.insert(keys_.end(), batch.keys.begin() + static_cast<ptrdiff_t>(begin),
               batch.keys.begin() + static_cast<ptrdiff_t>(end));
  if (schema_.values)
    values_.insert(values_.end(), batch.values.begin() + static_cast<ptrdiff_t>(begin),
                   batch.values.begin() + static_cast<ptrdiff_t>(end));
  keys_begin_.push_back(static_cast<uint32_t>(keys_.size()));
}

void BlockFileWriter::check_shape(const Batch& batch) const {
  const size_t slots = schema_.slots.size(), n = batch.size;
  FLUX_CHECK(batch.slots == slots && batch.dense == schema_.dense.size() &&
                 batch.labels.size() == schema_.labels.size() * n &&
                 batch.weights.size() == (schema_.weights ? n : 0) &&
                 batch.groups.size() == (schema_.groups ? n : 0) &&
                 batch.begin.size() == (schema_.many_keys ? n * slots + 1 : 0) &&
                 batch.values.size() == (schema_.values ? batch.keys.size() : 0),
             "a batch of another shape than the schema of {}", path_);
}

Status BlockFileWriter::take(const Batch& batch, uint32_t example) {
  add_example(batch, example);
  const size_t bytes = fixed_.size() + keys_.size() * schema_.key_bytes();
  if (bytes > block_file::kChunkBytesMax / 2)
    return invalid("{}: record {} has {} keys in a chunk; that is too many", path_,
                   records_ + keys_begin_.size(), keys_.size());
  const bool full = keys_begin_.size() > block_file::kChunkRecordsMax;
  if (full || bytes > chunk_bytes_) return close_chunk();
  return Status::ok();
}

Status BlockFileWriter::add(const Batch& batch) {
  check_shape(batch);
  for (uint32_t i = 0; i < batch.size; ++i) FLUX_RETURN_IF_ERROR(take(batch, i));
  return Status::ok();
}

Status BlockFileWriter::add(const Batch& batch, std::span<const uint32_t> examples) {
  check_shape(batch);
  for (const uint32_t example : examples) FLUX_RETURN_IF_ERROR(take(batch, example));
  return Status::ok();
}

uint32_t BlockFileWriter::count_bytes() const {
  const uint32_t most = counts_.empty() ? 0 : *std::max_element(counts_.begin(), counts_.end());
  return most > UINT16_MAX ? 4 : most > UINT8_MAX ? 2 : 1;
}

std::string BlockFileWriter::payload(uint32_t count_bytes) const {
  const size_t records = keys_begin_.size() - 1,
               slots = schema_.many_keys ? schema_.slots.size() : 0;
  const size_t fixed = schema_.fixed_bytes(), counts = slots * count_bytes;
  std::vector<uint32_t> begins;
  for (size_t r = 0; r <= records; ++r)
    begins.push_back(
        static_cast<uint32_t>(r * (fixed + counts) + keys_begin_[r] * schema_.key_bytes()));
  std::string out;
  out.reserve(begins.size() * sizeof(uint32_t) + begins.back());
  append(begins.data(), begins.size(), &out);
  for (size_t r = 0; r < records; ++r) {
    out.append(fixed_, r * fixed, fixed);
    for (size_t s = 0; s < slots; ++s)
      out.append(reinterpret_cast<const char*>(&counts_[r * slots + s]), count_bytes);
    const size_t n = keys_begin_[r + 1] - keys_begin_[r];
    append(keys_.data() + keys_begin_[r], n, &out);
    if (schema_.values) append(values_.data() + keys_begin_[r], n, &out);
  }
  return out;
}

Status BlockFileWriter::close_chunk() {
  const size_t records = keys_begin_.size() - 1;
  if (records == 0) return Status::ok();
  const std::string bytes = payload(count_bytes());
  const ChunkHead head = head_of(block_file::kChunkMagic, count_bytes(), records, bytes);
  index_.push_back({offset_, records_, head.payload_hash, static_cast<uint32_t>(records),
                    static_cast<uint32_t>(bytes.size())});
  FLUX_RETURN_IF_ERROR(write(&head, sizeof head));
  FLUX_RETURN_IF_ERROR(write(bytes.data(), bytes.size()));
  records_ += records;
  fixed_.clear();
  counts_.clear();
  keys_.clear();
  values_.clear();
  keys_begin_.assign(1, 0);
  return Status::ok();
}

Status BlockFileWriter::finish() {
  FLUX_RETURN_IF_ERROR(close_chunk());
  const block_file::Tail tail{offset_};
  std::string bytes;
  append(index_.data(), index_.size(), &bytes);
  const ChunkHead head = head_of(block_file::kIndexMagic, 1, records_, bytes);
  FLUX_RETURN_IF_ERROR(write(&head, sizeof head));
  FLUX_RETURN_IF_ERROR(write(bytes.data(), bytes.size()));
  FLUX_RETURN_IF_ERROR(write(&tail, sizeof tail));
  if (::fsync(file_) != 0) return io_error(temporary_, "flush");
  const int file = std::exchange(file_, -1);
  if (::close(file) != 0) return io_error(temporary_, "close");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const Status status = io_error(path_, "put in place");
    ::unlink(temporary_.c_str());
    return status;
  }
  return sync_folder(parent_folder(path_));
}

}  // namespace flux
