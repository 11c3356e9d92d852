#include "flux/data/shuffled_block.h"

#include <algorithm>
#include <utility>

namespace flux {
namespace {

uint32_t first_block_of(const Geometry& geometry, uint32_t file) {
  const auto at =
      std::partition_point(geometry.blocks.begin(), geometry.blocks.end(),
                           [file](const DataBlock& block) { return block.file < file; });
  return static_cast<uint32_t>(at - geometry.blocks.begin());
}

}  // namespace

ShuffledBlock::ShuffledBlock(std::unique_ptr<BlockReader> block, const Geometry& geometry,
                             uint32_t index, std::shared_ptr<const DataOptions> options)
    : block_(std::move(block)), options_(std::move(options)) {
  const uint32_t file = geometry.blocks[index].file;
  in_order_.format = geometry.format;
  in_order_.pipe = geometry.pipe;
  in_order_.batch_size = geometry.batch_size;
  in_order_.files = {geometry.files[file]};
  in_order_.blocks = {geometry.blocks[first_block_of(geometry, file)], geometry.blocks[index]};
  for (DataBlock& one : in_order_.blocks) one.file = 0;
}

Status ShuffledBlock::read_batch(uint32_t batch, Batch* out) const {
  Status status = block_->read_batch(batch, out);
  if (status.code() != Code::kInvalid) [[likely]]
    return status;
  return first_mistake(std::move(status));
}

Status ShuffledBlock::first_mistake(Status found) const {
  DataOptions options = *options_;
  options.shuffle = false;
  const auto data = Dataset::open(in_order_, options);
  if (!data.is_ok()) return found;
  for (uint32_t block = 0; block < in_order_.blocks.size(); ++block) {
    const auto reader = data.value()->open_block(block, 0);
    if (!reader.is_ok()) return found;
    Batch batch;
    for (uint32_t i = 0; i < in_order_.batches_in(block); ++i) {
      Status status = reader.value()->read_batch(i, &batch);
      if (status.code() == Code::kInvalid) return status;
      if (!status.is_ok()) return found;
    }
  }
  return found;
}

}  // namespace flux
