// A TextBlock for each format. Internal to data/.
// The objects are as TextBlock says; `options` have been checked.
#pragma once

#include <memory>

#include "flux/data/text_block.h"

namespace flux {

// What the blocks of a dataset share: parsed options, immutable.
class BlockFormat {
 public:
  virtual ~BlockFormat() = default;
  virtual std::unique_ptr<TextBlock> make(TextBlockPlace place,
                                          std::shared_ptr<BufferPool> pool) const = 0;
};

std::unique_ptr<const BlockFormat> criteo_format(const DataOptions& options);
// Loads the vocabulary; fails as that does.
Result<std::unique_ptr<const BlockFormat>> sentence_format(const DataOptions& options);

}  // namespace flux
