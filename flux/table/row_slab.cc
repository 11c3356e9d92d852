#include "flux/table/row_slab.h"

namespace flux {

size_t RowSlab::chunk_bytes(size_t chunk) const {
  const size_t octave = chunk < (2U << kSplit) ? 0 : (chunk >> kSplit) - 1;
  const size_t numbers = size_t{1} << (kUnit + octave);
  return (numbers >> layout_.group_shift) * layout_.group_bytes;
}

void RowSlab::add_chunk() {
  const size_t bytes = chunk_bytes(chunks_.size());
  chunks_.push_back(arena_->allocate(bytes));
  memory_bytes_ += bytes;
}

void RowSlab::clear() {
  for (size_t i = 0; i < chunks_.size(); ++i) arena_->release(chunks_[i], chunk_bytes(i));
  chunks_.clear();
  next_ = 0;
  size_ = 0;
  memory_bytes_ = 0;
}

}  // namespace flux
