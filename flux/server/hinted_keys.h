// The keys of one shard, table by table, so that the first table finds the rows for all.
// Pure; the caller holds the shard's lock.
#pragma once

#include <algorithm>
#include <cstddef>

#include "flux/table/sparse_shard.h"

namespace flux {

// Calls use(table, begin, keys, hints) for every table and all of `n` keys, in runs that fit into
// hints; hints are null where there is one table.
template <typename Use>
void for_hinted_keys(size_t tables, size_t n, const Use& use) {
  if (tables == 1) {
    RowHints* const none = nullptr;
    if (n > 0) use(0, 0, n, none);
    return;
  }
  for (size_t begin = 0; begin < n; begin += RowHints::kKeysMax) {
    RowHints hints;
    for (size_t t = 0; t < tables; ++t)
      use(t, begin, std::min(RowHints::kKeysMax, n - begin), &hints);
  }
}

}  // namespace flux
