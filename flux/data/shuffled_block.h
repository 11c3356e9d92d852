// ShuffledBlock: a block of text that is read in another order than that of its file, and that
// names mistakes all the same as somebody would who reads the file.
//
// A record that is refused may lie anywhere in it. The file's first block is then read in order,
// and this one after it; the first mistake of both is told. So a file of another format is named by
// its first line, whichever record was met first. Costs nothing unless a record is refused.
// Threads and failure: as the block that it holds.
#pragma once

#include <memory>
#include <string>

#include "flux/data/dataset.h"

namespace flux {

class ShuffledBlock final : public BlockReader {
 public:
  // `block` is number `index` of `geometry`, as a Dataset with `options` opened it.
  ShuffledBlock(std::unique_ptr<BlockReader> block, const Geometry& geometry, uint32_t index,
                std::shared_ptr<const DataOptions> options);

  Status read_batch(uint32_t batch, Batch* out) const override;
  std::string describe(uint32_t batch) const override { return block_->describe(batch); }
  std::string describe_example(uint32_t batch, uint32_t example) const override {
    return block_->describe_example(batch, example);
  }

 private:
  Status first_mistake(Status found) const;

  const std::unique_ptr<BlockReader> block_;
  Geometry in_order_;  // the file's first block, and this one
  const std::shared_ptr<const DataOptions> options_;
};

}  // namespace flux
