#include "flux/data/batch_place.h"

namespace flux {
namespace {

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
  const uint64_t first = in.lines_before + 1;
  const uint64_t last = first + in.lines() - 1;
  const uint32_t n = geometry.batch_records(block, batch);
  const uint64_t begin = first + uint64_t{batch} * geometry.batch_size;
  const std::string how =
      geometry.shuffle_seed == 0 ? "" : fmt::format(", shuffled for epoch {}", epoch);
  std::string records = fmt::format("records {} to {}", begin, begin + n - 1);
  if (n < in.lines())
    records = geometry.shuffle_seed == 0 && in.bad.empty()
                  ? fmt::format("{} of {} to {}", records, first, last)
                  : fmt::format("{} records of {} to {}{}", n, first, last, how);
  return place_text(file.path, file.packing != Packing::kPlain, {in.begin, in.end}, records);
}

std::vector<uint64_t> records_of_batch(const Geometry& geometry, uint32_t block, uint32_t batch,
                                       uint32_t epoch) {
  std::vector<uint64_t> out;
  if (!has_batch(geometry, block, batch)) return out;
  const uint64_t first = geometry.blocks[block].lines_before + 1;
  const std::vector<uint32_t> order = block_order(geometry, block, epoch);
  const size_t begin = size_t{batch} * geometry.batch_size;
  for (size_t i = begin; i < begin + geometry.batch_records(block, batch); ++i)
    out.push_back(first + order[i]);
  return out;
}

}  // namespace flux
