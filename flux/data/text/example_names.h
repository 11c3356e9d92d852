// ExampleNames: what lines call their examples (id=, a tag, a column `id`). The readers of blocks
// of lines offer it beside batches, for tools that write examples anew; training never asks for it.
//
// Threads: as BlockReader. Failure: none; a line that is no record has any name or none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flux {

class ExampleNames {
 public:
  virtual ~ExampleNames() = default;
  // Of each example of a batch, in its order; "": it has none.
  virtual std::vector<std::string> names_of(uint32_t batch) const = 0;
};

}  // namespace flux
