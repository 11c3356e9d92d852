#include "flux/data/batch_place.h"

namespace flux {
namespace {

// Number within its file of a block's first record, from 1.
uint64_t first_in_file(const Geometry& geometry, const DataBlock& block) {
  uint64_t before = 0;
  for (uint32_t f = 0; f < block.file; ++f) before += geometry.files[f].records;
  return block.first_record - before + 1;
}

bool has_batch(const Geometry& geometry, uint32_t block, uint32_t batch) {
  return block < geometry.blocks.size() && geometry.batch_size > 0 &&
         geometry.blocks[block].file < geometry.files.size() && batch < geometry.batches_in(block);
}

}  // namespace

std::string place_text(const std::string& path, bool packed, TextRange bytes,
                       const std::string& records) {
  if (packed) return fmt::format("{}: {}", path, records);
  return fmt::format("{}:{}..{} ({})", path, bytes.begin, bytes.end, records);
}

std::string describe_batch(const Geometry& geometry, uint32_t block, uint32_t batch,
                           uint32_t epoch) {
  if (!has_batch(geometry, block, batch))
    return fmt::format("batch {} of block {}, which the data does not have", batch, block);
  const DataBlock& in = geometry.blocks[block];
  const DataFile& file = geometry.files[in.file];
  const uint64_t first = first_in_file(geometry, in);
  const uint64_t last = first + in.records - 1;
  const uint32_t n = geometry.batch_records(block, batch);
  const uint64_t begin = first + uint64_t{batch} * geometry.batch_size;
  std::string records = fmt::format("records {} to {}", begin, begin + n - 1);
  if (n < in.records)
    records =
        geometry.shuffle_seed == 0
            ? fmt::format("{} of {} to {}", records, first, last)
            : fmt::format("{} records of {} to {}, shuffled for epoch {}", n, first, last, epoch);
  return place_text(file.path, file.packing != Packing::kPlain, {in.begin, in.end}, records);
}

std::vector<uint64_t> records_of_batch(const Geometry& geometry, uint32_t block, uint32_t batch,
                                       uint32_t epoch) {
  std::vector<uint64_t> out;
  if (!has_batch(geometry, block, batch)) return out;
  const uint64_t first = first_in_file(geometry, geometry.blocks[block]);
  const std::vector<uint32_t> order = block_order(geometry, block, epoch);
  const size_t begin = size_t{batch} * geometry.batch_size;
  for (size_t i = begin; i < begin + geometry.batch_records(block, batch); ++i)
    out.push_back(first + order[i]);
  return out;
}

}  // namespace flux
