// OneByOne: a block that was opened may be read again record by record, without being loaded again.
// The readers of blocks of lines and of block files offer it beside batches, for those who want to
// know which records of a batch are bad.
//
// Threads: none may read while the reader changes over. Failure: none.
#pragma once

namespace flux {

class OneByOne {
 public:
  virtual ~OneByOne() = default;
  // From now on each example is a batch of its own.
  virtual void read_one_by_one() = 0;
};

}  // namespace flux
