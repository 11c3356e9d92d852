// SparseShard: the rows of one virtual shard of one sparse table, by key.
//
// Hash index -> rows in slabs. A row is [count: uint32][weights: dim floats][optimizer state].
// `count` is the integer oracle: +1 per occurrence of the key in the data, never decayed, so that
// after any faults its sum says how often each example was applied.
// Rows are created by the first push; until then a pull returns the initial value, a hash of
// (key, seed), and changes nothing.
// Threads: none inside; the owner holds the shard's lock around every call (pull may run
// concurrently with pull). Failure: none but out of memory, which aborts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/key.h"
#include "flux/base/status.h"
#include "flux/optimizer/optimizer.h"

namespace flux {

struct TableOptions {
  std::string name = "embedding";
  uint32_t dim = 8;              // floats per row that a model sees, 1..4096
  std::string init = "uniform";  // uniform in [-init_scale, init_scale) | zero
  float init_scale = 0.01F;
  uint64_t seed = 1;
  OptimizerOptions optimizer;
  // Slots whose keys have rows here; none: all. Tables name the same slots or different ones, so
  // that every slot belongs to one group (api/model_shape.h).
  std::vector<std::string> slots = {};
  uint32_t group = 0;  // 0: rows for all keys, else for those of this group, from 1
};

// Names the field that is out of range, the range and the value.
Status check_table_options(const TableOptions& options);

class RowArena;  // memory shared by the shards of one table; thread-safe

std::shared_ptr<RowArena> make_row_arena(const TableOptions& options);

// Rows of a save that is copied in slices.
struct RowCopy {
  std::string bytes;              // in saved form
  std::vector<uint32_t> numbers;  // of the rows, rising
  uint32_t next_row = 0;          // where to go on
  size_t next_word = 0;
};

// Where the keys of a call were found. Tables of one shard get the same keys in the same order, so
// a row is nearly always the same one counted from the first in all of them; the key in the row
// decides. The first call fills it, those to other tables with the same keys look there before the
// index.
struct RowHints {
  static constexpr size_t kKeysMax = 1024;  // of a call with hints
  bool known = false;
  std::array<uint32_t, kKeysMax> ordinals;  // valid once known; ~0: no row
};

class SparseShard {
 public:
  // `optimizer` must outlive the shard and be the one that `options` describes.
  SparseShard(const TableOptions& options, const Optimizer* optimizer,
              std::shared_ptr<RowArena> arena);
  ~SparseShard();
  SparseShard(SparseShard&&) noexcept;
  SparseShard& operator=(SparseShard&&) noexcept;

  size_t size() const;
  // weights of keys[i] -> out + i * dim.
  void pull(std::span<const Key> keys, float* out, RowHints* hints = nullptr) const;
  // Applies gradients[i * dim ..] to keys[i] (created if absent) and adds counts[i] to its count.
  // Keys are normally unique; a repeated key is applied in order. lr_scale: see Optimizer.
  void push(std::span<const Key> keys, const float* gradients, const uint32_t* counts,
            float lr_scale = 1, RowHints* hints = nullptr);

  // A hint that these keys will soon be pulled or pushed: fetches their lines of the index and
  // changes nothing. A caller who visits many shards with few keys each gives it to the next shard
  // before working on this one. Needs no lock.
  void prefetch(std::span<const Key> keys) const;

  // Sum of all counts; the oracle of exactly-once.
  uint64_t count_sum() const;
  // Calls visit(key, count, weights) for every row, in an order that is fixed by the history.
  template <typename Visit>
  void for_each(Visit visit) const {
    visit_rows(
        [](void* context, const char* row) {
          Key key;
          uint32_t count;
          std::memcpy(&key, row, sizeof key);
          std::memcpy(&count, row + 8, sizeof count);
          (*static_cast<Visit*>(context))(key, count, reinterpret_cast<const float*>(row + 12));
        },
        &visit);
  }

  // Bytes of one saved row: key (8) + count (4) + (dim + state) floats.
  size_t saved_row_bytes() const;
  // Appends every row in saved form, ordered as for_each.
  void save_rows(std::string* out) const;
  // Adds rows in saved form to an empty shard; kCorrupt if the bytes are not whole rows, a key
  // repeats, or a key does not belong to `shard` of `shards`. After a failure the shard is empty.
  // Loaded rows count as saved: none of them has changed.
  Status load_rows(std::string_view saved, uint32_t shard, uint32_t shards);

  // Increments: the shard knows which rows were pushed to since the last save that stands.
  size_t changed_rows() const;
  // What changed up to now belongs to the save that begins; pushes from now on to the next one. The
  // save before must have ended.
  void begin_save();
  // The same in slices, between which the lock may be let go, so that pushes wait for a slice and
  // not for a table: after begin_save(), save_slice() until it says that there is no more, then
  // finish_slices(), which copies once more what was pushed to meanwhile: the copy is of that
  // moment. `whole`: every row, not only those of the save. `rows`: about so many in a slice.
  bool save_slice(bool whole, size_t rows, RowCopy* copy) const;
  void finish_slices(RowCopy* copy);
  // The save stands: its rows are changed only if they were pushed to since. Or it does not: its
  // rows count as changed again. Without a save under way nothing happens.
  void end_save(bool stands);
  // Order-free hash of (key, row) over all rows.
  uint64_t content_hash() const;
  // Bytes held for index and rows.
  size_t memory_bytes() const;
  // For benchmarks and metrics.
  struct Figures {
    double index_load;    // entries used / entries
    double index_lines;   // mean cache lines of the index read by a successful look-up
    double row_lines;     // mean cache lines of a whole row
    double weight_lines;  // mean cache lines of key, count and weights
    double row_stride;    // bytes from row to row, padding included
    size_t index_bytes;
    size_t row_bytes;
  };
  Figures figures() const;

 private:
  struct Impl;
  void visit_rows(void (*visit)(void* context, const char* row), void* context) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flux
