#include "flux/data/tools/global_shuffle.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "flux/base/random.h"
#include "flux/base/text.h"
#include "flux/data/blocks/writer.h"

namespace flux {
namespace {

constexpr uint64_t kBucketsMax = 512;  // files that are open at once
constexpr uint64_t kSplitMin = 8;      // buckets that one which is too large is split into
constexpr uint64_t kFewRecords = 64;   // so many may be in memory, whatever their size
constexpr int kSplitsMax = 8;          // of splits within each other

uint64_t bytes_of(const Batch& batch, uint32_t example) {
  const size_t slots = batch.slots, first = size_t{example} * slots, labels = batch.labels.size();
  uint64_t keys = slots;
  if (!batch.begin.empty()) keys = batch.begin[first + slots] - batch.begin[first];
  return (labels / batch.size + batch.dense + (batch.weights.empty() ? 0 : 1) +
          (batch.begin.empty() ? 0 : slots) + (batch.values.empty() ? 0 : keys)) *
             sizeof(float) +
         (keys + (batch.groups.empty() ? 0 : 1)) * sizeof(uint64_t);
}

uint64_t bytes_in(const Batch& batch) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < batch.size; ++i) sum += bytes_of(batch, i);
  return sum;
}

Status stopped(const std::atomic<bool>* stop) {
  if (stop == nullptr || !stop->load()) return Status::ok();
  return error(Code::kCancelled, "stopped while shuffling");
}

// Records in memory, to be written in an order that is drawn.
class Bucket {
 public:
  void add(const Batch& batch) {
    for (uint32_t i = 0; i < batch.size; ++i)
      records_.push_back({static_cast<uint32_t>(batches_.size()), i});
    batches_.push_back(batch);
  }
  Status write(Random* random, BlockFileWriter* out) {
    for (size_t i = records_.size(); i > 1; --i)
      std::swap(records_[i - 1], records_[random->below(i)]);
    for (const Record& record : records_)
      FLUX_RETURN_IF_ERROR(out->add(batches_[record.batch], {&record.example, 1}));
    return Status::ok();
  }

 private:
  struct Record {
    uint32_t batch, example;
  };
  std::vector<Batch> batches_;
  std::vector<Record> records_;
};

struct BucketFile {
  std::string path;
  uint64_t records = 0, bytes = 0;  // as they are in memory
  uint64_t longest = 0;             // bytes of a record
};

// The files of the buckets; removed at the end, whatever that is.
class Buckets {
 public:
  explicit Buckets(std::string folder) : folder_(std::move(folder)) {}
  ~Buckets() {
    writers_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Buckets(const Buckets&) = delete;
  Buckets& operator=(const Buckets&) = delete;

  // What is not yet on disk is about half of the memory at most: a string and a vector that double.
  Status create(uint64_t count, const RecordSchema& schema, uint64_t memory_bytes) {
    std::error_code failed;
    std::filesystem::remove_all(folder_, failed);  // of a run that was killed
    if (!std::filesystem::create_directories(folder_, failed))
      return error(Code::kIo, "{}: cannot be created: {}", folder_, failed.message());
    const auto chunk = static_cast<uint32_t>(
        std::min<uint64_t>(block_file::kChunkBytesAim, memory_bytes / 4 / count));
    for (uint64_t b = 0; b < count; ++b) {
      files_.push_back({fmt::format("{}/{}.blocks", folder_, b)});
      FLUX_ASSIGN_OR_RETURN(auto writer,
                            BlockFileWriter::create(files_.back().path, schema, chunk));
      writers_.push_back(std::move(writer));
    }
    return Status::ok();
  }
  Status add(const Batch& batch, Random* random) {
    std::vector<std::vector<uint32_t>> chosen(writers_.size());
    for (uint32_t i = 0; i < batch.size; ++i) {
      const uint64_t bucket = random->below(chosen.size()), bytes = bytes_of(batch, i);
      chosen[bucket].push_back(i);
      BucketFile& file = files_[bucket];
      file.bytes += bytes;
      file.longest = std::max(file.longest, bytes);
    }
    for (size_t b = 0; b < chosen.size(); ++b)
      FLUX_RETURN_IF_ERROR(writers_[b]->add(batch, chosen[b]));
    return Status::ok();
  }
  // Those that hold something.
  Result<std::vector<BucketFile>> finish() {
    std::vector<BucketFile> full;
    for (size_t b = 0; b < writers_.size(); ++b) {
      FLUX_RETURN_IF_ERROR(writers_[b]->finish());
      files_[b].records = writers_[b]->records();
      if (files_[b].records > 0) full.push_back(files_[b]);
    }
    writers_.clear();
    return full;
  }

 private:
  const std::string folder_;
  std::vector<BucketFile> files_;
  std::vector<std::unique_ptr<BlockFileWriter>> writers_;
};

// How many buckets so many bytes need, each half of the memory.
uint64_t buckets_for(double bytes, uint64_t memory_bytes) {
  const double wanted = 1 + bytes / (static_cast<double>(memory_bytes) / 2);
  return static_cast<uint64_t>(std::min(wanted, static_cast<double>(kBucketsMax)));
}

// By the size of the first records.
Result<uint64_t> buckets_needed(const WholeData& data, uint64_t memory_bytes) {
  uint64_t bytes = 0, records = 0;
  const Status seen = data.read([&](const Batch& batch) -> Status {
    bytes += bytes_in(batch);
    records += batch.size;
    return records < 100'000 ? Status::ok() : error(Code::kCancelled, "enough");
  });
  if (!seen.is_ok() && seen.code() != Code::kCancelled) return seen;
  const double all = static_cast<double>(bytes) /
                     static_cast<double>(std::max<uint64_t>(1, records)) *
                     static_cast<double>(data.records());
  return buckets_for(all, memory_bytes);
}

// One shuffle: what its steps share.
class Shuffle {
 public:
  Shuffle(const ShuffleOptions& options, const std::atomic<bool>* stop, BlockFileWriter* out)
      : options_(options), stop_(stop), out_(out), random_(options.seed) {}

  // Without buckets; false, and nothing is written, if that needs more than the memory.
  Result<bool> in_memory(const WholeData& data) {
    Bucket all;
    uint64_t bytes = 0;
    const Status read = data.read([&](const Batch& batch) -> Status {
      bytes += bytes_in(batch);
      if (bytes > options_.memory_bytes) return error(Code::kCancelled, "too large");
      all.add(batch);
      return stopped(stop_);
    });
    if (bytes > options_.memory_bytes) return false;
    FLUX_RETURN_IF_ERROR(read);
    FLUX_RETURN_IF_ERROR(all.write(&random_, out_));
    return true;
  }

  // Through `count` buckets in `folder`; one that turns out too large is split in the same way.
  Status by_buckets(const WholeData& data, uint64_t count, const std::string& folder,
                    int splits = 0) {
    Buckets buckets(folder);
    FLUX_RETURN_IF_ERROR(buckets.create(count, data.schema(), options_.memory_bytes));
    FLUX_RETURN_IF_ERROR(data.read([&](const Batch& batch) -> Status {
      FLUX_RETURN_IF_ERROR(stopped(stop_));
      return buckets.add(batch, &random_);
    }));
    FLUX_ASSIGN_OR_RETURN(const std::vector<BucketFile> full, buckets.finish());
    for (const BucketFile& file : full) {
      FLUX_RETURN_IF_ERROR(write(file, data.options(), splits));
      std::error_code ignored;
      std::filesystem::remove(file.path, ignored);  // the disk is needed by the others
    }
    return Status::ok();
  }

 private:
  Status write(const BucketFile& file, const DataOptions& source, int splits) {
    FLUX_ASSIGN_OR_RETURN(const WholeData part, open_bucket(file, source));
    const bool large = file.bytes > options_.memory_bytes / 2 && file.records > kFewRecords;
    if (large && splits < kSplitsMax) {
      const uint64_t wanted = buckets_for(static_cast<double>(file.bytes), options_.memory_bytes);
      return by_buckets(part, std::max(kSplitMin, wanted), file.path + ".split", splits + 1);
    }
    Bucket bucket;
    FLUX_RETURN_IF_ERROR(part.read([&](const Batch& batch) -> Status {
      bucket.add(batch);
      return stopped(stop_);
    }));
    return bucket.write(&random_, out_);
  }

  // Cut small, as a block of it is in memory beside the records.
  Result<WholeData> open_bucket(const BucketFile& file, const DataOptions& source) const {
    constexpr uint64_t kShare = 32, kBatchMax = 1024;
    DataOptions options = as_written(block_file_options(source));
    options.batch_size = static_cast<uint32_t>(
        std::clamp<uint64_t>(options_.memory_bytes / kShare / file.longest, 1, kBatchMax));
    FLUX_ASSIGN_OR_RETURN(Geometry cut, Dataset::scan({&file.path, 1}, options, 1));
    return WholeData::open_cut(std::move(cut), std::move(options), 1);
  }

  const ShuffleOptions options_;
  const std::atomic<bool>* const stop_;
  BlockFileWriter* const out_;
  Random random_;
};

}  // namespace

Status shuffle_to_blocks(const WholeData& data, const std::string& out,
                         const ShuffleOptions& options, const std::atomic<bool>* stop) {
  FLUX_ASSIGN_OR_RETURN(uint64_t count, buckets_needed(data, options.memory_bytes));
  FLUX_ASSIGN_OR_RETURN(const auto writer, BlockFileWriter::create(out, data.schema()));
  Shuffle shuffle(options, stop, writer.get());
  if (count == 1) {
    FLUX_ASSIGN_OR_RETURN(const bool done, shuffle.in_memory(data));
    if (done) return writer->finish();
    count = kSplitMin;  // the first records were shorter than the others
  }
  FLUX_RETURN_IF_ERROR(shuffle.by_buckets(data, count, out + ".buckets"));
  return writer->finish();
}

}  // namespace flux
