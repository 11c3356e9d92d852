#include "flux/data/dataset.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include <immintrin.h>

#include "flux/base/buffer.h"
#include "flux/base/text.h"
#include "flux/data/batch_place.h"
#include "flux/data/criteo.h"
#include "flux/data/criteo_line.h"
#include "flux/data/gzip.h"
#include "flux/data/lines.h"
#include "flux/data/log1p.h"
#include "flux/data/options.h"
#include "flux/data/reference_parser.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

// The text of blocks that are done with, to be filled again: fresh pages cost as much as reading.
class BufferPool {
 public:
  Buffer<char> take(size_t size) {
    Buffer<char> out;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        out = std::move(free_.back());
        free_.pop_back();
      }
    }
    out.resize_discard(size);
    return out;
  }
  void give(Buffer<char> buffer) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kFreeMax) free_.push_back(std::move(buffer));
  }

 private:
  static constexpr size_t kFreeMax = 4;
  std::mutex mutex_;
  std::vector<Buffer<char>> free_;
};

struct Reading {
  bool log1p = true;
  bool key_per_example = false;
};

class CriteoBlock final : public BlockReader {
 public:
  CriteoBlock(const DataBlock& block, uint32_t batch_size, Reading reading, const DataFile& file,
              uint64_t first_line, std::shared_ptr<BufferPool> pool)
      : block_(block),
        batch_size_(batch_size),
        reading_(reading),
        path_(file.path),
        gzip_(file.gzip),
        first_line_(first_line),
        pool_(std::move(pool)),
        text_(pool_->take(block.end - block.begin + kCriteoSlack)) {
    std::memset(text_.data() + (block.end - block.begin), 0, kCriteoSlack);
  }
  ~CriteoBlock() override { pool_->give(std::move(text_)); }

  char* text() { return text_.data(); }

  // To be called once the text is there.
  Status prepare(std::vector<uint32_t> order) {
    order_ = std::move(order);
    begins_.resize(block_.records + 1);
    const size_t lines = index_lines(text_.data(), static_cast<uint32_t>(block_.end - block_.begin),
                                     block_.records, begins_.data());
    if (lines != block_.records)
      return error(Code::kStale,
                   "{}: bytes {} to {} hold {} lines where the scan found {}: the file "
                   "has changed since; start afresh to scan it again",
                   path_, block_.begin, block_.end,
                   lines > block_.records ? "more" : std::to_string(lines), block_.records);
    return Status::ok();
  }

  Status read_batch(uint32_t batch, Batch* out) const override;
  std::string describe(uint32_t batch) const override;
  std::string describe_example(uint32_t batch, uint32_t example) const override;

 private:
  // The bytes of records `first` to `last` of the block, with their newlines.
  TextRange bytes_of(uint32_t first, uint32_t last) const {
    return {block_.begin + begins_[first],
            std::min<uint64_t>(block_.begin + begins_[last + 1], block_.end)};
  }
  void prefetch(size_t position) const {
    if (position >= order_.size()) return;
    const char* line = text_.data() + begins_[order_[position]];
    for (int i = 0; i < 6; ++i) _mm_prefetch(line + i * 64, _MM_HINT_T0);
  }
  Status parse(uint32_t record, CriteoRecord* out) const {
    const char* line = text_.data() + begins_[record];
    const size_t size = begins_[record + 1] - 1 - begins_[record];
    if (parse_criteo_line(line, size, out)) [[likely]]
      return Status::ok();
    const auto wrong = reference_parse_line({line, size}, out);
    if (!wrong) return Status::ok();
    return invalid("{}:{}:{}: {}", path_, first_line_ + record, wrong->column, wrong->what);
  }

  const DataBlock block_;
  const uint32_t batch_size_;
  const Reading reading_;
  const std::string path_;
  const bool gzip_;
  const uint64_t first_line_;  // number in the file of the block's first line, from 1
  const std::shared_ptr<BufferPool> pool_;
  Buffer<char> text_;
  std::vector<uint32_t> begins_;
  std::vector<uint32_t> order_;
};

Status CriteoBlock::read_batch(uint32_t batch, Batch* out) const {
  const uint64_t begin = uint64_t{batch} * batch_size_;
  FLUX_CHECK(begin < order_.size(), "batch {} of a block of {} records", batch, order_.size());
  out->size = static_cast<uint32_t>(std::min<uint64_t>(batch_size_, order_.size() - begin));
  out->slots = reading_.key_per_example ? 1 : kCriteoSlots;
  out->dense = kCriteoDense;
  out->labels.resize(out->size);
  out->dense_values.resize(size_t{out->size} * kCriteoDense);
  out->keys.resize(size_t{out->size} * out->slots);
  constexpr size_t kAhead = 4;
  for (size_t i = 0; i < kAhead; ++i) prefetch(begin + i);
  CriteoRecord record;
  float* dense = out->dense_values.data();
  uint64_t* keys = out->keys.data();
  for (uint32_t i = 0; i < out->size; ++i) {
    prefetch(begin + i + kAhead);
    const uint32_t number = order_[begin + i];
    FLUX_RETURN_IF_ERROR(parse(number, &record));
    out->labels[i] = record.label;
    std::memcpy(dense, record.dense, kCriteoDense * sizeof(float));
    dense += kCriteoDense;
    if (reading_.key_per_example) {
      *keys++ = criteo_example_key(block_.first_record + number);
    } else {
      std::memcpy(keys, record.keys, kCriteoSlots * sizeof(uint64_t));
      keys += kCriteoSlots;
    }
  }
  if (reading_.log1p) log1p_relu(out->dense_values);
  return Status::ok();
}

std::string CriteoBlock::describe(uint32_t batch) const {
  const size_t begin = size_t{batch} * batch_size_;
  if (begin >= order_.size()) return "";
  const size_t end = std::min<size_t>(begin + batch_size_, order_.size());
  const auto [low, high] = std::minmax_element(order_.begin() + static_cast<ptrdiff_t>(begin),
                                               order_.begin() + static_cast<ptrdiff_t>(end));
  const uint64_t first = first_line_ + *low;
  const uint64_t last = first_line_ + *high;
  const std::string records = last - first + 1 == end - begin
                                  ? fmt::format("records {} to {}", first, last)
                                  : fmt::format("{} of records {} to {}", end - begin, first, last);
  return place_text(path_, gzip_, bytes_of(*low, *high), records);
}

std::string CriteoBlock::describe_example(uint32_t batch, uint32_t example) const {
  const size_t at = size_t{batch} * batch_size_ + example;
  if (example >= batch_size_ || at >= order_.size()) return "";
  const uint32_t record = order_[at];
  return place_text(path_, gzip_, bytes_of(record, record),
                    fmt::format("record {}", first_line_ + record));
}

class CriteoDataset final : public Dataset {
 public:
  CriteoDataset(Geometry geometry, const DataOptions& options)
      : geometry_(std::move(geometry)),
        reading_{options.dense_transform == "log1p", options.key_per_example} {
    uint64_t first = 0;
    std::vector<std::vector<uint64_t>> cuts(geometry_.files.size());
    for (const DataBlock& block : geometry_.blocks) cuts[block.file].push_back(block.begin);
    for (size_t i = 0; i < geometry_.files.size(); ++i) {
      const DataFile& file = geometry_.files[i];
      first_record_.push_back(first);
      first += file.records;
      gzip_.push_back(file.gzip ? std::make_unique<GzipFile>(file.path, std::move(cuts[i]))
                                : nullptr);
    }
  }
  const Geometry& geometry() const override { return geometry_; }
  uint32_t slots() const override { return reading_.key_per_example ? 1 : kCriteoSlots; }
  uint32_t dense() const override { return kCriteoDense; }
  Result<std::unique_ptr<BlockReader>> open_block(uint32_t block, uint32_t epoch) const override;

 private:
  const Geometry geometry_;
  const Reading reading_;
  std::vector<uint64_t> first_record_;           // of each file
  std::vector<std::unique_ptr<GzipFile>> gzip_;  // of each file, null if plain
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
};

Result<std::unique_ptr<BlockReader>> CriteoDataset::open_block(uint32_t index,
                                                               uint32_t epoch) const {
  FLUX_CHECK(index < geometry_.blocks.size(), "block {} of {}", index, geometry_.blocks.size());
  const DataBlock& block = geometry_.blocks[index];
  const DataFile& file = geometry_.files[block.file];
  const uint64_t first_line = block.first_record - first_record_[block.file] + 1;
  auto out =
      std::make_unique<CriteoBlock>(block, geometry_.batch_size, reading_, file, first_line, pool_);
  if (file.gzip) {
    FLUX_RETURN_IF_ERROR(
        gzip_[block.file]->read(block.begin, block.end - block.begin, out->text()));
  } else {
    FLUX_ASSIGN_OR_RETURN(const ReadFile opened, ReadFile::open(file.path));
    FLUX_RETURN_IF_ERROR(opened.read_at(block.begin, out->text(), block.end - block.begin));
  }
  FLUX_RETURN_IF_ERROR(out->prepare(block_order(geometry_, index, epoch)));
  return std::unique_ptr<BlockReader>(std::move(out));
}

}  // namespace

Result<std::unique_ptr<Dataset>> Dataset::open(const Geometry& geometry,
                                               const DataOptions& options) {
  FLUX_RETURN_IF_ERROR(check_data_options(options));
  Geometry now = geometry;
  now.format = options.format;
  now.batch_size = options.batch_size;
  now.shuffle_seed = shuffle_seed_of(options);
  for (DataFile& file : now.files) {
    FLUX_ASSIGN_OR_RETURN(const ReadFile opened, ReadFile::open(file.path));
    const auto modified_ns = static_cast<uint64_t>(opened.modified_ns());
    if (opened.size() != file.bytes || modified_ns == file.modified_ns) {
      file.bytes = opened.size();
      continue;
    }
    const auto again = scan({&file.path, 1}, options, 1);  // written anew: the same text?
    file.content = again.is_ok() ? again.value().files[0].content : ~file.content;
  }
  const std::vector<std::string> differences = geometry_differences(geometry, now);
  if (!differences.empty())
    return error(Code::kStale,
                 "the data is not what this pass was cut from: {}\n"
                 "put it back until the pass is closed, or start over with --fresh",
                 join(differences, "; "));
  for (const DataBlock& block : geometry.blocks)
    if (block.end - block.begin >= kBlockBytesMax)
      return error(Code::kCorrupt, "geometry: a block of {}", human_bytes(block.end - block.begin));
  return std::unique_ptr<Dataset>(std::make_unique<CriteoDataset>(geometry, options));
}

}  // namespace flux
