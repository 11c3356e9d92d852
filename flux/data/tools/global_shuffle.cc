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

uint64_t bytes_in(const Batch& batch) {
  return (batch.labels.size() + batch.dense_values.size() + batch.weights.size() +
          batch.begin.size() + batch.values.size()) *
             sizeof(float) +
         (batch.keys.size() + batch.groups.size()) * sizeof(uint64_t);
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

  Status create(uint64_t count, const RecordSchema& schema) {
    std::error_code failed;
    std::filesystem::remove_all(folder_, failed);  // of a run that was killed
    if (!std::filesystem::create_directories(folder_, failed))
      return error(Code::kIo, "{}: cannot be created: {}", folder_, failed.message());
    for (uint64_t b = 0; b < count; ++b) {
      FLUX_ASSIGN_OR_RETURN(auto writer, BlockFileWriter::create(path(b), schema));
      writers_.push_back(std::move(writer));
    }
    return Status::ok();
  }
  Status add(const Batch& batch, Random* random) {
    std::vector<std::vector<uint32_t>> chosen(writers_.size());
    for (uint32_t i = 0; i < batch.size; ++i) chosen[random->below(chosen.size())].push_back(i);
    for (size_t b = 0; b < chosen.size(); ++b)
      FLUX_RETURN_IF_ERROR(writers_[b]->add(batch, chosen[b]));
    return Status::ok();
  }
  Status finish() {
    for (auto& writer : writers_) FLUX_RETURN_IF_ERROR(writer->finish());
    for (size_t b = 0; b < writers_.size(); ++b)
      if (writers_[b]->records() > 0) full_.push_back(path(b));
    writers_.clear();
    return Status::ok();
  }
  const std::vector<std::string>& full() const { return full_; }

 private:
  std::string path(uint64_t bucket) const { return fmt::format("{}/{}.blocks", folder_, bucket); }

  const std::string folder_;
  std::vector<std::unique_ptr<BlockFileWriter>> writers_;
  std::vector<std::string> full_;  // the files that hold something
};

// By the size of the first records: how many buckets the data needs, each half of the memory.
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
  const uint64_t buckets = 1 + static_cast<uint64_t>(all / (static_cast<double>(memory_bytes) / 2));
  if (buckets > kBucketsMax)
    return invalid("the shuffle needs about {} of memory for {} of records; it may use {}",
                   human_bytes(static_cast<uint64_t>(all * 2 / kBucketsMax)),
                   human_bytes(static_cast<uint64_t>(all)), human_bytes(memory_bytes));
  return buckets;
}

Status read_into(const WholeData& data, const std::atomic<bool>* stop, Bucket* bucket) {
  return data.read([&](const Batch& batch) -> Status {
    bucket->add(batch);
    return stopped(stop);
  });
}

}  // namespace

Status shuffle_to_blocks(const WholeData& data, const std::string& out,
                         const ShuffleOptions& options, const std::atomic<bool>* stop) {
  FLUX_ASSIGN_OR_RETURN(const uint64_t count, buckets_needed(data, options.memory_bytes));
  FLUX_ASSIGN_OR_RETURN(const auto writer, BlockFileWriter::create(out, data.schema()));
  Random random(options.seed);
  if (count == 1) {
    Bucket all;
    FLUX_RETURN_IF_ERROR(read_into(data, stop, &all));
    FLUX_RETURN_IF_ERROR(all.write(&random, writer.get()));
    return writer->finish();
  }
  Buckets buckets(out + ".buckets");
  FLUX_RETURN_IF_ERROR(buckets.create(count, data.schema()));
  FLUX_RETURN_IF_ERROR(data.read([&](const Batch& batch) -> Status {
    FLUX_RETURN_IF_ERROR(stopped(stop));
    return buckets.add(batch, &random);
  }));
  FLUX_RETURN_IF_ERROR(buckets.finish());
  for (const std::string& path : buckets.full()) {
    FLUX_ASSIGN_OR_RETURN(const WholeData part,
                          WholeData::open({path}, block_file_options(data.options()), 1));
    Bucket bucket;
    FLUX_RETURN_IF_ERROR(read_into(part, stop, &bucket));
    FLUX_RETURN_IF_ERROR(bucket.write(&random, writer.get()));
  }
  return writer->finish();
}

}  // namespace flux
