#include "flux/table/sparse_shard.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "flux/table/changed_rows.h"
#include "flux/table/initial_value.h"
#include "flux/table/key_index.h"
#include "flux/table/row_arena.h"
#include "flux/table/row_slab.h"

namespace flux {
namespace {

// A call is worked through in blocks of keys: block b is hashed, block b - kProbeLag looked up in
// the index and block b - kUseLag read or updated, so that each waits for memory beside the others.
constexpr size_t kBlock = 16;
constexpr size_t kProbeLag = 1;
constexpr size_t kUseLag = 2;
constexpr size_t kStages = 4;         // a power of two above kUseLag
constexpr size_t kPrefetchLines = 8;  // of a long row; the CPU streams the rest
constexpr size_t kAhead = 16;         // rows between prefetch and use while loading
constexpr uint32_t kDimMax = 4096;

Key key_of(const char* row) {
  Key key;
  std::memcpy(&key, row, sizeof key);
  return key;
}
float* floats_of(char* row) {
  return reinterpret_cast<float*>(row + RowLayout::kHeaderBytes);
}
void prefetch_bytes(const char* start, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(start);
  const uintptr_t last = (address + bytes - 1) / 64;
  const uintptr_t first = address / 64;
  const uintptr_t end = std::min<uintptr_t>(last, first + kPrefetchLines - 1);
  for (uintptr_t line = first; line <= end; ++line) {
    __builtin_prefetch(reinterpret_cast<const char*>(line * 64));
  }
}

void copy_floats(float* to, const float* from, size_t n) {
  if (n >= 8) {
    for (size_t i = 0; i + 8 < n; i += 8) _mm256_storeu_ps(to + i, _mm256_loadu_ps(from + i));
    _mm256_storeu_ps(to + n - 8, _mm256_loadu_ps(from + n - 8));
  } else if (n >= 4) {
    const __m128 first = _mm_loadu_ps(from);
    _mm_storeu_ps(to + n - 4, _mm_loadu_ps(from + n - 4));
    _mm_storeu_ps(to, first);
  } else {
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

// What is known of the keys of one block on their way through the passes.
struct Stage {
  std::array<uint64_t, kBlock> hash;
  std::array<char*, kBlock> row;        // likely row, unverified; nullptr if the key is absent
  std::array<uint32_t, kBlock> number;  // of that row
};

}  // namespace

struct SparseShard::Impl {
  Impl(const TableOptions& options, const Optimizer* rule, std::shared_ptr<RowArena> arena)
      : dim(options.dim),
        floats(options.dim + rule->state_size(options.dim)),
        initial{options.init == "zero" ? 0.0F : options.init_scale, options.seed},
        optimizer(rule),
        slab(make_row_layout(floats), std::move(arena)),
        index(&slab.arena()),
        changed(&slab.arena()) {}

  // The three passes over a block: hash and fetch index lines; probe and fetch rows; use them.
  void hash_block(std::span<const Key> keys, Stage& stage) const {
    for (size_t i = 0; i < keys.size(); ++i) {
      stage.hash[i] = key_hash(keys[i]);
      index.prefetch(stage.hash[i]);
    }
  }
  // `ordinals` of the block's rows, as another table has them; nullptr: the index is asked.
  template <bool kWrite>
  void probe_block(size_t n, const uint32_t* ordinals, Stage& stage, size_t bytes) const {
    for (size_t i = 0; i < n; ++i) {
      const uint32_t number = ordinals != nullptr
                                  ? number_of(ordinals[i])
                                  : index.find(stage.hash[i], [](uint32_t) { return true; });
      stage.number[i] = number;
      stage.row[i] = nullptr;
      if (number == KeyIndex::kNone) continue;
      stage.row[i] = slab.row(number);
      prefetch_bytes(stage.row[i], bytes);
      if constexpr (kWrite) changed.prefetch(number);
    }
  }
  uint32_t number_of(uint32_t ordinal) const {
    return ordinal < slab.size() ? slab.layout().number(ordinal) : KeyIndex::kNone;
  }
  void note(RowHints* hints, size_t i, uint32_t number) const {
    if (hints == nullptr || hints->known) return;
    hints->ordinals[i] = number == KeyIndex::kNone ? number : slab.layout().ordinal(number);
  }
  // Calls use(begin, block, stage) for every block of keys, with the next two blocks under way.
  template <bool kWrite, typename Use>
  void for_blocks(std::span<const Key> keys, size_t bytes, RowHints* hints, const Use& use) const {
    FLUX_CHECK(hints == nullptr || keys.size() <= RowHints::kKeysMax, "{} keys", keys.size());
    const uint32_t* known = hints != nullptr && hints->known ? hints->ordinals.data() : nullptr;
    std::array<Stage, kStages> stages;
    const size_t blocks = (keys.size() + kBlock - 1) / kBlock;
    const auto block = [&](size_t b) {
      return keys.subspan(b * kBlock, std::min(kBlock, keys.size() - b * kBlock));
    };
    for (size_t b = 0; b < blocks + kUseLag; ++b) {
      if (b < blocks && known == nullptr) hash_block(block(b), stages[b % kStages]);
      const size_t probed = b - kProbeLag;  // wraps round, and is then not below `blocks`
      if (probed < blocks)
        probe_block<kWrite>(block(probed).size(),
                            known == nullptr ? nullptr : known + probed * kBlock,
                            stages[probed % kStages], bytes);
      const size_t used = b - kUseLag;
      if (used < blocks) use(used * kBlock, block(used), stages[used % kStages]);
    }
    if (hints != nullptr) hints->known = true;
  }

  // Its number, or kNone.
  uint32_t find(Key key, uint64_t hash) const {
    return index.find(hash, [&](uint32_t number) { return key_of(slab.row(number)) == key; });
  }
  // The row of a key whose likely row did not hold it.
  uint32_t find_or_create(Key key, uint64_t hash) {
    const uint32_t found = find(key, hash);
    if (found != KeyIndex::kNone) return found;
    const uint32_t number = append(key, hash);
    char* row = slab.row(number);
    const uint32_t zero = 0;
    std::memcpy(row + 8, &zero, sizeof zero);
    initial.fill(key, floats_of(row), dim);
    optimizer->init_state(floats_of(row) + dim, dim);
    return number;
  }
  // A new row of which only the key is set.
  uint32_t append(Key key, uint64_t hash) {
    if (slab.size() >= index.capacity()) {
      resize_index(std::max(KeyIndex::lines_for(slab.size() + 1), index.lines() * 3 / 2));
    }
    const uint32_t number = slab.append();
    changed.reserve(size_t{number} + 1);
    std::memcpy(slab.row(number), &key, sizeof key);
    index.insert(hash, number);
    return number;
  }
  void resize_index(size_t lines) {
    index.resize(lines, slab.layout().numbers(lines * KeyIndex::kLineEntries));
    slab.for_each(
        [&](uint32_t number, const char* row) { index.insert(key_hash(key_of(row)), number); });
  }
  // Whole rows into an empty shard, with room made once.
  Status load(std::string_view saved, uint32_t shard, uint32_t shards) {
    const size_t bytes = slab.layout().bytes;
    const size_t rows = saved.size() / bytes;
    if (rows > 0) resize_index(KeyIndex::lines_for(rows));
    changed.reserve(slab.layout().numbers(rows));
    for (size_t i = 0; i < rows; ++i) {
      const char* from = saved.data() + i * bytes;
      if (i + kAhead < rows) index.prefetch(key_hash(key_of(from + kAhead * bytes)));
      const Key key = key_of(from);
      if (shard_of(key, shards) != shard) {
        return error(Code::kCorrupt, "saved rows of shard {}: row {} has key {} of shard {}", shard,
                     i, key, shard_of(key, shards));
      }
      const uint64_t hash = key_hash(key);
      if (find(key, hash) != KeyIndex::kNone) {
        return error(Code::kCorrupt, "saved rows of shard {}: row {} repeats key {}", shard, i,
                     key);
      }
      std::memcpy(slab.row(append(key, hash)), from, bytes);
    }
    return Status::ok();
  }
  size_t pulled_bytes() const { return RowLayout::kHeaderBytes + 4 * dim; }

  const size_t dim;
  const size_t floats;  // weights and state
  const InitialValue initial;
  const Optimizer* const optimizer;
  RowSlab slab;
  KeyIndex index;
  ChangedRows changed;
};

std::shared_ptr<RowArena> make_row_arena(const TableOptions& /*options*/) {
  return std::make_shared<RowArena>();
}

Status check_table_options(const TableOptions& o) {
  if (o.dim < 1 || o.dim > kDimMax) {
    return invalid("table '{}': dim is {}; it must be from 1 to {}", o.name, o.dim, kDimMax);
  }
  if (o.init != "uniform" && o.init != "zero") {
    return invalid("table '{}': init '{}' is not known; choose uniform or zero", o.name, o.init);
  }
  if (!(o.init_scale >= 0.0F) || std::isinf(o.init_scale)) {
    return invalid("table '{}': init_scale is {}; it must be a number >= 0", o.name, o.init_scale);
  }
  auto optimizer = make_optimizer(o.optimizer);
  if (optimizer.is_ok()) return Status::ok();
  return optimizer.status().with_context(fmt::format("table '{}'", o.name));
}

SparseShard::SparseShard(const TableOptions& options, const Optimizer* optimizer,
                         std::shared_ptr<RowArena> arena)
    : impl_(std::make_unique<Impl>(options, optimizer, std::move(arena))) {}
SparseShard::~SparseShard() = default;
SparseShard::SparseShard(SparseShard&&) noexcept = default;
SparseShard& SparseShard::operator=(SparseShard&&) noexcept = default;

size_t SparseShard::size() const {
  return impl_->slab.size();
}

void SparseShard::pull(std::span<const Key> keys, float* out, RowHints* hints) const {
  const Impl& impl = *impl_;
  const size_t dim = impl.dim;
  const bool hinted = hints != nullptr && hints->known;
  const auto use = [&](size_t begin, auto block, const Stage& stage) {
    float* to = out + begin * dim;
    for (size_t i = 0; i < block.size(); ++i, to += dim) {
      char* row = stage.row[i];
      uint32_t number = stage.number[i];
      if (row == nullptr ? hinted : key_of(row) != block[i]) {
        number = impl.find(block[i], key_hash(block[i]));
        row = number == KeyIndex::kNone ? nullptr : impl.slab.row(number);
      }
      impl.note(hints, begin + i, number);
      if (row != nullptr) {
        copy_floats(to, floats_of(row), dim);
      } else {
        impl.initial.fill(block[i], to, dim);
      }
    }
  };
  impl.for_blocks<false>(keys, impl.pulled_bytes(), hints, use);
}

void SparseShard::push(std::span<const Key> keys, const float* gradients, const uint32_t* counts,
                       float lr_scale, RowHints* hints) {
  Impl& impl = *impl_;
  const size_t dim = impl.dim;
  std::array<float*, kBlock> rows;
  const auto use = [&](size_t begin, auto block, const Stage& stage) {
    for (size_t i = 0; i < block.size(); ++i) {
      char* row = stage.row[i];
      uint32_t number = stage.number[i];
      if (row == nullptr || key_of(row) != block[i]) {
        number = impl.find_or_create(block[i], key_hash(block[i]));
        row = impl.slab.row(number);
      }
      impl.note(hints, begin + i, number);
      impl.changed.set(number);
      uint32_t count;
      std::memcpy(&count, row + 8, sizeof count);
      count += counts[begin + i];
      std::memcpy(row + 8, &count, sizeof count);
      rows[i] = floats_of(row);
    }
    impl.optimizer->update_rows(rows.data(), gradients + begin * dim, block.size(), dim, lr_scale);
  };
  impl.for_blocks<true>(keys, impl.slab.layout().bytes, hints, use);
}

void SparseShard::prefetch(std::span<const Key> keys) const {
  for (const Key key : keys) impl_->index.prefetch(key_hash(key));
}

void SparseShard::visit_rows(void (*visit)(void* context, const char* row), void* context) const {
  impl_->slab.for_each([&](uint32_t, const char* row) { visit(context, row); });
}

uint64_t SparseShard::count_sum() const {
  uint64_t sum = 0;
  for_each([&](Key, uint32_t count, const float*) { sum += count; });
  return sum;
}

size_t SparseShard::saved_row_bytes() const {
  return impl_->slab.layout().bytes;
}

void SparseShard::save_rows(std::string* out) const {
  const size_t bytes = saved_row_bytes();
  out->reserve(out->size() + size() * bytes);
  impl_->slab.for_each([&](uint32_t, const char* row) { out->append(row, bytes); });
}

size_t SparseShard::changed_rows() const {
  return impl_->changed.count();
}

void SparseShard::begin_save() {
  impl_->changed.begin();
}

bool SparseShard::save_slice(bool whole, size_t rows, RowCopy* copy) const {
  const Impl& impl = *impl_;
  const size_t bytes = saved_row_bytes();
  const auto add = [&](uint32_t number) {
    copy->bytes.append(impl.slab.row(number), bytes);
    copy->numbers.push_back(number);
  };
  if (copy->numbers.empty()) {
    const size_t all = whole ? size() : impl.changed.count_saving();
    copy->bytes.reserve(all * bytes);
    copy->numbers.reserve(all);
  }
  if (!whole) return impl.changed.visit_saving(&copy->next_word, rows, add);
  const size_t end = std::min(size(), copy->numbers.size() + rows);
  while (copy->numbers.size() < end) {
    add(copy->next_row);
    copy->next_row = impl.slab.layout().next(copy->next_row);
  }
  return end < size();
}

void SparseShard::finish_slices(RowCopy* copy) {
  const size_t bytes = saved_row_bytes();
  const auto begin = copy->numbers.begin(), end = copy->numbers.end();
  impl_->changed.absorb([&](uint32_t number) {
    const auto at = std::lower_bound(begin, end, number);
    const char* row = impl_->slab.row(number);
    if (at != end && *at == number)
      std::memcpy(copy->bytes.data() + static_cast<size_t>(at - begin) * bytes, row, bytes);
    else
      copy->bytes.append(row, bytes);
  });
}

void SparseShard::end_save(bool stands) {
  if (stands)
    impl_->changed.drop();
  else
    impl_->changed.bring_back();
}

Status SparseShard::load_rows(std::string_view saved, uint32_t shard, uint32_t shards) {
  Impl& impl = *impl_;
  FLUX_CHECK(size() == 0, "rows are loaded into a shard that has {} rows", size());
  const size_t bytes = saved_row_bytes();
  if (saved.size() % bytes != 0) {
    return error(Code::kCorrupt, "saved rows of shard {}: {} bytes are not whole rows of {} bytes",
                 shard, saved.size(), bytes);
  }
  const Status status = impl.load(saved, shard, shards);
  if (!status.is_ok()) {
    impl.index.release();
    impl.slab.clear();
    impl.changed.clear();
  }
  return status;
}

uint64_t SparseShard::content_hash() const {
  uint64_t sum = 0;
  const size_t bytes = saved_row_bytes();
  impl_->slab.for_each([&](uint32_t, const char* row) { sum += hash_bytes(row, bytes); });
  return sum;
}

SparseShard::Figures SparseShard::figures() const {
  const RowLayout& layout = impl_->slab.layout();
  const KeyIndex& index = impl_->index;
  Figures f{};
  f.row_lines = layout.lines(layout.bytes);
  f.weight_lines = layout.lines(impl_->pulled_bytes());
  f.row_stride = layout.bytes_per_row();
  f.index_bytes = index.memory_bytes();
  f.row_bytes = impl_->slab.memory_bytes();
  if (size() == 0) return f;
  f.index_load = static_cast<double>(size()) / static_cast<double>(index.lines() * 16);
  size_t probes = 0;
  impl_->slab.for_each([&](uint32_t number, const char* row) {
    probes += index.lines_read(key_hash(key_of(row)), number);
  });
  f.index_lines = static_cast<double>(probes) / static_cast<double>(size());
  return f;
}

size_t SparseShard::memory_bytes() const {
  return impl_->slab.memory_bytes() + impl_->index.memory_bytes() + impl_->changed.memory_bytes();
}

}  // namespace flux
