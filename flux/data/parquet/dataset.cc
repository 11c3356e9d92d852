#include "flux/data/parquet/dataset.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "flux/data/options.h"
#include "flux/data/parquet/parquet_block.h"
#include "flux/data/parquet/row_source.h"

namespace flux {
namespace {

// Of a file with fewer rows all that is passed over is kept (row_source.h).
constexpr uint64_t kInOrderRows = RowSource::kPassedRows;
// Of a pass. What files say of their rows is believed until they are read, so it has a bound.
constexpr uint64_t kBlocksMax = 1 << 20;
constexpr size_t kRecentFiles = 4;  // of which all is kept that was read ahead

// What is read: the counting model needs no slots.
DataOptions read_options(const DataOptions& options) {
  DataOptions out = options;
  if (options.key_per_example) out.slots.clear();
  return out;
}

class ParquetDataset final : public Dataset {
 public:
  ParquetDataset(Geometry geometry, const DataOptions& options)
      : geometry_(std::move(geometry)),
        features_(features_of(options)),
        reading_(std::make_shared<const ParquetReading>(options)) {}
  const Geometry& geometry() const override { return geometry_; }
  const Features& features() const override { return features_; }

  Status open_files(const DataOptions& options) {
    const DataOptions wanted = read_options(options);
    for (const DataBlock& block : geometry_.blocks)
      block_rows_ = std::max(block_rows_, static_cast<uint32_t>(block.lines()));
    for (const DataFile& file : geometry_.files) {
      FLUX_ASSIGN_OR_RETURN(auto opened, ParquetFile::open(file.path));
      FLUX_ASSIGN_OR_RETURN(ColumnMap map, map_columns(file.path, opened->columns(), wanted));
      if (opened->rows() < file.records)
        return invalid("{}: has {} records where {} were found; start afresh", file.path,
                       opened->rows(), file.records);
      sources_.push_back(
          std::make_unique<RowSource>(std::move(opened), std::move(map), wanted, block_rows_));
    }
    return Status::ok();
  }

  Result<std::unique_ptr<BlockReader>> open_block(uint32_t index, uint32_t epoch) const override {
    FLUX_CHECK(index < geometry_.blocks.size(), "block {} of {}", index, geometry_.blocks.size());
    const DataBlock& block = geometry_.blocks[index];
    RowSource& source = *sources_[block.file];
    note_use(block.file);
    std::vector<uint32_t> order = block_order(geometry_, index, epoch);
    FLUX_ASSIGN_OR_RETURN(const RowSource::Part part,
                          source.read(block.lines_before, static_cast<uint32_t>(block.lines()),
                                      end_of_run(index, source.ahead_rows())));
    ParquetBlock::Content content{source.layout(), nullptr, nullptr};
    content.large = LargeNumbers({part.columns->values(), source.layout()->map.wanted.size()},
                                 part.from, part.rows);
    if (follow_each_other(order)) {
      content.columns = part.columns;
      content.from = part.from;
    } else {
      FLUX_ASSIGN_OR_RETURN(content.rows, source.rows_of(part, block));
    }
    return std::unique_ptr<BlockReader>(std::make_unique<ParquetBlock>(
        reading_, geometry_.files[block.file].path, std::move(content), block, geometry_.batch_size,
        std::move(order)));
  }

 private:
  // Of files that were read before the last few, less is kept.
  void note_use(uint32_t file) const {
    const auto left = left_for(file);
    if (left) sources_[*left]->keep_less();  // waits for those who read it: not under the mutex
  }

  std::optional<uint32_t> left_for(uint32_t file) const {
    const std::lock_guard lock(mutex_);
    if (!recent_.empty() && recent_.back() == file) return std::nullopt;
    std::erase(recent_, file);
    recent_.push_back(file);
    if (recent_.size() <= kRecentFiles) return std::nullopt;
    const uint32_t left = recent_.front();
    recent_.pop_front();
    return left;
  }

  // Where the last of the blocks ends that lie behind this one and have, with it, at most so many
  // rows.
  uint64_t end_of_run(uint32_t index, uint64_t rows_most) const {
    const DataBlock& first = geometry_.blocks[index];
    uint64_t end = first.lines_before + first.lines();
    for (size_t i = index + size_t{1}; i < geometry_.blocks.size(); ++i) {
      const DataBlock& next = geometry_.blocks[i];
      const bool follows = next.file == first.file && next.lines_before == end;
      if (!follows || end + next.lines() - first.lines_before > rows_most) break;
      end += next.lines();
    }
    return end;
  }

  const Geometry geometry_;
  const Features features_;
  const std::shared_ptr<const ParquetReading> reading_;
  std::vector<std::unique_ptr<RowSource>> sources_;  // of each file
  uint32_t block_rows_ = 1;
  mutable std::mutex mutex_;
  mutable std::deque<uint32_t> recent_;  // files, the last one read last; under mutex_
};

Status check_blocks(uint64_t records, uint64_t block_records, const std::string& path) {
  const uint64_t most = kBlocksMax * block_records;
  if (records <= most) return Status::ok();
  return invalid(
      "{}: says that it has so many records that the pass has {}; at most {} are read with this "
      "data.batch; is the file whole, or should the pass be split?",
      path, records, most);
}

void cut_parquet_file(const ParquetFile& file, uint32_t number, uint32_t per_block, Geometry* g) {
  const uint64_t first = g->records(), block_records = uint64_t{per_block} * g->batch_size;
  g->files.push_back({file.path(), file.file().size(), file.rows(), Packing::kColumns,
                      static_cast<uint64_t>(file.file().modified_ns()), file.content(),
                      RowSource::keeps_cursor(file, block_records) && file.rows() > kInOrderRows});
  for (uint64_t row = 0; row < file.rows(); row += block_records) {
    const uint64_t rows = std::min(block_records, file.rows() - row);
    g->blocks.push_back({number, row, row + rows, first + row, static_cast<uint32_t>(rows)});
  }
}

}  // namespace

Result<Geometry> scan_parquet_files(std::span<const std::string> paths, const DataOptions& options,
                                    const std::atomic<bool>* stop) {
  std::vector<std::shared_ptr<const ParquetFile>> files;
  uint64_t records = 0;
  for (const std::string& path : paths) {
    if (stop != nullptr && stop->load())
      return error(Code::kCancelled, "stopped while reading the data");
    FLUX_ASSIGN_OR_RETURN(auto file, ParquetFile::open(path));
    FLUX_RETURN_IF_ERROR(map_columns(path, file->columns(), read_options(options)).status());
    if (file->is_own() && !options.raw_keys && !options.key_per_example)
      return invalid(
          "{}: was written by flux, its keys are those of tables; say data.raw_keys: true", path);
    if (file->rows() == 0)
      return invalid("{}: holds no record; remove it from the data or fill it", path);
    records += file->rows();
    FLUX_RETURN_IF_ERROR(check_blocks(records, uint64_t{kBlockBatches} * options.batch_size, path));
    files.push_back(std::move(file));
  }
  Geometry g;
  g.format = options.format;
  g.batch_size = options.batch_size;
  g.shuffle_seed = shuffle_seed_of(options);
  const uint32_t per_block = block_batches(records, options.batch_size);
  for (uint32_t i = 0; i < files.size(); ++i) cut_parquet_file(*files[i], i, per_block, &g);
  return g;
}

Result<std::unique_ptr<Dataset>> open_parquet_files(const Geometry& geometry,
                                                    const DataOptions& options) {
  auto out = std::make_unique<ParquetDataset>(geometry, options);
  FLUX_RETURN_IF_ERROR(out->open_files(options));
  return std::unique_ptr<Dataset>(std::move(out));
}

}  // namespace flux
