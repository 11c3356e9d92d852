#include "flux/data/blocks/dataset.h"

#include <algorithm>
#include <utility>

#include "flux/base/text.h"
#include "flux/data/blocks/record_block.h"
#include "flux/data/options.h"

namespace flux {
namespace {

using block_file::ChunkHead;
using block_file::IndexEntry;

class BlockFileDataset final : public Dataset {
 public:
  BlockFileDataset(Geometry geometry, const DataOptions& options)
      : geometry_(std::move(geometry)), features_(features_of(options)) {}
  const Geometry& geometry() const override { return geometry_; }
  const Features& features() const override { return features_; }

  Status open_files(const DataOptions& options) {
    uint64_t first = 0;
    for (const DataFile& file : geometry_.files) {
      auto reading = std::make_shared<RecordReading>(options);
      FLUX_ASSIGN_OR_RETURN(reading->file, BlockFile::open(file.path));
      if (reading->file->content() != file.content)
        return invalid("{}: was written anew since it was cut; start afresh", file.path);
      RecordSchema wanted = schema_of(options);
      if (options.key_per_example) wanted.slots = reading->file->schema().slots;
      FLUX_ASSIGN_OR_RETURN(reading->map, map_schema(file.path, reading->file->schema(), wanted));
      reading->first_record = first;
      first += file.records;
      readings_.push_back(std::move(reading));
    }
    return Status::ok();
  }

  Result<std::unique_ptr<BlockReader>> open_block(uint32_t index, uint32_t epoch) const override {
    FLUX_CHECK(index < geometry_.blocks.size(), "block {} of {}", index, geometry_.blocks.size());
    const DataBlock& block = geometry_.blocks[index];
    auto out =
        std::make_unique<RecordBlock>(readings_[block.file], block, geometry_.batch_size, pool_);
    FLUX_RETURN_IF_ERROR(out->load(block_order(geometry_, index, epoch)));
    return std::unique_ptr<BlockReader>(std::move(out));
  }

 private:
  const Geometry geometry_;
  const Features features_;
  std::vector<std::shared_ptr<const RecordReading>> readings_;  // of each file
  const std::shared_ptr<BufferPool> pool_ = std::make_shared<BufferPool>();
};

Status cut_block_file(const BlockFile& file, uint32_t number, uint32_t per_block, Geometry* g) {
  const uint64_t first = g->records(), block_records = uint64_t{per_block} * g->batch_size;
  g->files.push_back({file.path(), file.file().size(), file.records(), Packing::kPlain,
                      static_cast<uint64_t>(file.file().modified_ns()), file.content()});
  for (uint64_t record = 0; record < file.records(); record += block_records) {
    const uint64_t records = std::min(block_records, file.records() - record);
    const std::span<const IndexEntry> chunks = file.chunks_of(record, records);
    const uint64_t end =
        chunks.back().offset + sizeof(ChunkHead) + uint64_t{chunks.back().payload_bytes};
    if (end - chunks.front().offset >= kBlockBytesMax)
      return invalid("{}: a block of {} batches of {} records is {}; lower data.batch_size",
                     file.path(), per_block, g->batch_size,
                     human_bytes(end - chunks.front().offset));
    g->blocks.push_back(
        {number, chunks.front().offset, end, first + record, static_cast<uint32_t>(records)});
  }
  return Status::ok();
}

}  // namespace

Result<Geometry> scan_block_files(std::span<const std::string> paths, const DataOptions& options,
                                  const std::atomic<bool>* stop) {
  std::vector<std::shared_ptr<const BlockFile>> files;
  uint64_t records = 0;
  for (const std::string& path : paths) {
    if (stop != nullptr && stop->load())
      return error(Code::kCancelled, "stopped while reading the data");
    FLUX_ASSIGN_OR_RETURN(auto file, BlockFile::open(path));
    if (file->records() == 0)
      return invalid("{}: holds no record; remove it from the data or fill it", path);
    RecordSchema wanted = schema_of(options);
    if (options.key_per_example) wanted.slots = file->schema().slots;
    FLUX_RETURN_IF_ERROR(map_schema(path, file->schema(), wanted).status());
    records += file->records();
    files.push_back(std::move(file));
  }
  Geometry g;
  g.format = options.format;
  g.batch_size = options.batch_size;
  g.shuffle_seed = shuffle_seed_of(options);
  const uint32_t per_block = block_batches(records, options.batch_size);
  for (uint32_t i = 0; i < files.size(); ++i)
    FLUX_RETURN_IF_ERROR(cut_block_file(*files[i], i, per_block, &g));
  return g;
}

Result<std::vector<DataBlock>> first_chunks(const std::string& path, uint64_t records) {
  FLUX_ASSIGN_OR_RETURN(const auto file, BlockFile::open(path));
  std::vector<DataBlock> out;
  records = std::min(records, file->records());
  if (records == 0) return out;
  for (const IndexEntry& chunk : file->chunks_of(0, records))
    out.push_back({0, chunk.offset, chunk.offset + sizeof(ChunkHead) + chunk.payload_bytes,
                   chunk.first_record, chunk.records});
  return out;
}

Result<std::unique_ptr<Dataset>> open_block_files(const Geometry& geometry,
                                                  const DataOptions& options) {
  auto out = std::make_unique<BlockFileDataset>(geometry, options);
  FLUX_RETURN_IF_ERROR(out->open_files(options));
  return std::unique_ptr<Dataset>(std::move(out));
}

}  // namespace flux
