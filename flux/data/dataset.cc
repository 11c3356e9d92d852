#include "flux/data/dataset.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "flux/base/buffer.h"
#include "flux/base/check.h"
#include "flux/base/hash.h"
#include "flux/base/text.h"
#include "flux/data/criteo.h"
#include "flux/data/gzip_text.h"
#include "flux/data/log1p.h"
#include "flux/data/newlines.h"
#include "flux/data/scan.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

constexpr uint64_t kBlocksWanted = 64;             // in a pass, so that workers can share it
constexpr uint64_t kBlockBytesWanted = 64U << 20;  // at most, unless one batch is larger

// Batches per block: a function of the data and the batch size alone.
uint32_t batches_per_block(uint64_t records, uint64_t text_bytes, uint32_t batch_size) {
  const uint64_t batches = std::max<uint64_t>(1, records / batch_size);
  const uint64_t batch_bytes = std::max<uint64_t>(1, text_bytes / batches);
  const uint64_t wanted = std::min(batches / kBlocksWanted, kBlockBytesWanted / batch_bytes);
  return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, kBlockBatches));
}

class CriteoBlock final : public BlockReader {
 public:
  CriteoBlock(const Geometry& geometry, const DataOptions& options, uint32_t block, uint32_t epoch,
              uint64_t first_line)
      : geometry_(geometry), options_(options), block_(block), first_line_(first_line),
        order_(block_order(geometry, block, epoch)) {}

  Status load(const ReadFile& file, const GzipIndex* index) {
    const DataBlock& block = geometry_.blocks[block_];
    size_ = block.end - block.begin;
    text_.resize_discard(size_ + kParsePadding);
    std::fill(text_.end() - kParsePadding, text_.end(), '\0');
    FLUX_RETURN_IF_ERROR(index == nullptr
                             ? file.read_at(block.begin, text_.data(), size_)
                             : read_gzip_range(file, *index, block.begin, text_.data(), size_));
    line_starts(text_.data(), size_, &starts_);
    if (starts_.size() != block.records)
      return error(Code::kStale, "{}: {} lines where the pass was cut with {}; the file has changed",
                   file.path(), starts_.size(), block.records);
    starts_.push_back(static_cast<uint32_t>(size_ + (text_[size_ - 1] == '\n' ? 0 : 1)));
    return Status::ok();
  }

  Status read_batch(uint32_t batch, Batch* out) const override {
    const uint32_t n = geometry_.batch_records(block_, batch);
    const bool by_example = options_.key_per_example;
    out->size = n;
    out->slots = by_example ? 1 : kCriteoSlots;
    out->dense = kCriteoDense;
    out->labels.resize(n);
    out->dense_values.resize(static_cast<size_t>(n) * kCriteoDense);
    out->keys.resize(static_cast<size_t>(n) * out->slots);
    const uint32_t* records = order_.data() + static_cast<size_t>(batch) * geometry_.batch_size;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t r = records[i];
      uint64_t* keys = out->keys.data() + static_cast<size_t>(i) * out->slots;
      if (i + 4 < n) {  // shuffled lines are scattered: ask for a later one in time
        const char* ahead = text_.data() + starts_[records[i + 4]];
        for (int line = 0; line < 6; ++line) __builtin_prefetch(ahead + line * 64);
      }
      const char* line = text_.data() + starts_[r];
      const char* end = text_.data() + starts_[r + 1] - 1;
      if (!parse_criteo_line(line, end, out->labels.data() + i,
                             out->dense_values.data() + static_cast<size_t>(i) * kCriteoDense,
                             by_example ? nullptr : keys)) [[unlikely]]
        return problem(r);
      if (by_example) *keys = example_key(geometry_.blocks[block_].first_record + r);
    }
    if (options_.dense_transform == "log1p")
      log1p_of_positive(out->dense_values.data(), out->dense_values.size());
    return Status::ok();
  }

 private:
  Status problem(uint32_t record) const {
    const LineProblem found = find_criteo_problem(text_.data() + starts_[record],
                                                  text_.data() + starts_[record + 1] - 1);
    return invalid("{}:{}:{}: {}", geometry_.files[geometry_.blocks[block_].file].path,
                   first_line_ + record, found.column, found.what);
  }

  const Geometry& geometry_;
  const DataOptions& options_;
  const uint32_t block_;
  const uint64_t first_line_;  // number of the block's first line in its file, from 1
  std::vector<uint32_t> order_;
  Buffer<char> text_;
  size_t size_ = 0;
  std::vector<uint32_t> starts_;  // of every line, and the end
};

class CriteoDataset final : public Dataset {
 public:
  CriteoDataset(Geometry geometry, const DataOptions& options)
      : geometry_(std::move(geometry)), options_(options), indexes_(geometry_.files.size()),
        index_mutexes_(geometry_.files.size()) {
    for (size_t f = 0; f < indexes_.size(); ++f) indexes_[f] = geometry_.files[f].gzip_index;
  }

  Status open_files() {
    uint64_t first = 0;
    std::vector<std::string> differences;
    for (const DataFile& entry : geometry_.files) {
      FLUX_ASSIGN_OR_RETURN(auto file, ReadFile::open(entry.path));
      if (file->size() != entry.bytes)
        differences.push_back(
            fmt::format("{}: {} bytes, was {}", entry.path, file->size(), entry.bytes));
      files_.push_back(std::move(file));
      first_records_.push_back(first);
      first += entry.records;
    }
    if (differences.empty()) return Status::ok();
    return error(Code::kStale,
                 "the data has changed since this pass was cut:\n  {}\nput the files back, or "
                 "start over with --fresh",
                 join(differences, "\n  "));
  }

  const Geometry& geometry() const override { return geometry_; }
  uint32_t slots() const override { return feature_counts(options_).slots; }
  uint32_t dense() const override { return feature_counts(options_).dense; }

  Result<std::unique_ptr<BlockReader>> open_block(uint32_t block, uint32_t epoch) const override {
    FLUX_CHECK(block < geometry_.blocks.size(), "block {}", block);
    const DataBlock& entry = geometry_.blocks[block];
    const GzipIndex* index = nullptr;
    if (geometry_.files[entry.file].gzip) {
      FLUX_ASSIGN_OR_RETURN(index, gzip_index(entry.file));
    }
    auto reader = std::make_unique<CriteoBlock>(
        geometry_, options_, block, epoch, entry.first_record - first_records_[entry.file] + 1);
    FLUX_RETURN_IF_ERROR(reader->load(*files_[entry.file], index));
    return std::unique_ptr<BlockReader>(std::move(reader));
  }

 private:
  // Made by the scan, or, after a resume, once by whoever needs it first.
  Result<const GzipIndex*> gzip_index(uint32_t file) const {
    const std::lock_guard lock(index_mutexes_[file]);
    if (indexes_[file] == nullptr) {
      FLUX_ASSIGN_OR_RETURN(indexes_[file], inflate_gzip(*files_[file], [](std::string_view) {
                              return Status::ok();
                            }));
    }
    return indexes_[file].get();
  }

  const Geometry geometry_;
  const DataOptions options_;
  std::vector<std::unique_ptr<ReadFile>> files_;
  std::vector<uint64_t> first_records_;
  mutable std::vector<std::shared_ptr<const GzipIndex>> indexes_;
  mutable std::vector<std::mutex> index_mutexes_;
};

}  // namespace

FeatureCounts feature_counts(const DataOptions& options) {
  return {options.key_per_example ? 1 : kCriteoSlots, kCriteoDense};
}

uint64_t shuffle_seed_of(const DataOptions& options) {
  return hash_pair(options.seed, 0x5u) | 1;  // 0 means "no shuffle"
}

Result<Geometry> Dataset::scan(std::span<const std::string> files, const DataOptions& options,
                               unsigned threads) {
  if (files.empty()) return invalid("no data files given");
  Geometry geometry;
  geometry.format = options.format;
  geometry.batch_size = options.batch_size;
  geometry.shuffle_seed = options.shuffle ? shuffle_seed_of(options) : 0;
  std::vector<ScannedFile> scanned;
  uint64_t records = 0, text_bytes = 0;
  for (const std::string& path : files) {
    FLUX_ASSIGN_OR_RETURN(ScannedFile file, scan_file(path, options.batch_size, threads));
    if (file.records == 0) return invalid("{}: the file is empty; give files with records", path);
    records += file.records;
    text_bytes += file.text_bytes;
    geometry.files.push_back(
        {path, file.bytes, file.records, path.ends_with(".gz"), file.gzip_index});
    scanned.push_back(std::move(file));
  }
  const uint32_t per_block = batches_per_block(records, text_bytes, options.batch_size);
  uint64_t first = 0;
  for (uint32_t f = 0; f < scanned.size(); ++f) {
    const std::vector<uint64_t>& starts = scanned[f].batch_starts;
    uint64_t left = scanned[f].records;
    for (size_t b = 0; b < starts.size(); b += per_block) {
      const uint64_t n = std::min<uint64_t>(left, static_cast<uint64_t>(per_block) *
                                                      options.batch_size);
      const uint64_t end =
          b + per_block < starts.size() ? starts[b + per_block] : scanned[f].text_bytes;
      geometry.blocks.push_back({f, starts[b], end, first, static_cast<uint32_t>(n)});
      first += n;
      left -= n;
    }
  }
  return geometry;
}

Result<std::unique_ptr<Dataset>> Dataset::open(const Geometry& geometry,
                                               const DataOptions& options) {
  auto dataset = std::make_unique<CriteoDataset>(geometry, options);
  FLUX_RETURN_IF_ERROR(dataset->open_files());
  return std::unique_ptr<Dataset>(std::move(dataset));
}

}  // namespace flux
