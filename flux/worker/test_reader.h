// TestReader: a reader without data, for tests of messages that name where a batch or record lies.
// Pure.
#pragma once

#include <string>

#include "flux/base/text.h"
#include "flux/data/dataset.h"

namespace flux {

class TestReader final : public BlockReader {
 public:
  Status read_batch(uint32_t, Batch*) const override { return Status::ok(); }
  std::string describe(uint32_t batch) const override { return fmt::format("place {}", batch); }
  std::string describe_example(uint32_t, uint32_t example) const override {
    return fmt::format("line {}", example);
  }
};

}  // namespace flux
