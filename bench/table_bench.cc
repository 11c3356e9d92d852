// Table benchmark: what a look-up and an update of a random row cost, against what the machine's
// memory allows.
//
//   table_bench [--keys N]... [--dim D] [--batches N]
//
// For each number of keys it fills a table of 256 shards, then pulls and pushes batches of 10,000
// unique random existing keys the way a server does (grouped by shard, one pull and one push call
// per shard and batch), and compares with lines x cost, where `lines` is the number of cache lines
// touched (in the pull, and again in the push) and `cost` is measured in the same run: a prefetched
// read-modify-write of random lines in a region as large as the table. Thread CPU time; the best of
// several rounds. The last line of each part is JSON.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "flux/base/buffer.h"
#include "flux/base/random.h"
#include "flux/base/text.h"
#include "flux/table/row_arena.h"
#include "flux/table/sparse_shard.h"

namespace flux {
namespace {

constexpr uint32_t kShards = 256;
constexpr size_t kBatch = 10000;
constexpr int kRounds = 5;
constexpr size_t kCopyKeysMax = 20000000;  // larger tables are not copied

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename Work>
double best_ns(size_t units, const Work& work) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const double start = cpu_seconds();
    work();
    best = std::min(best, (cpu_seconds() - start) / static_cast<double>(units) * 1e9);
  }
  return best;
}

// Nanoseconds per random line of a region of `bytes`, read, changed and written, with many lines
// in flight: the best that this machine does for a table of that size.
double line_cost_ns(size_t bytes) {
  const size_t lines = bytes / 64;
  Buffer<uint64_t> region(lines * 8);
  region.fill(1);
  const size_t n = 2000000;
  std::vector<uint32_t> order(n + 64);
  Random random(11);
  for (uint32_t& line : order) line = static_cast<uint32_t>(random.below(lines));
  double best = 1e30;
  for (const size_t ahead : {12, 24, 48}) {
    best = std::min(best, best_ns(n, [&] {
                      for (size_t i = 0; i < n; ++i) {
                        __builtin_prefetch(&region[size_t{order[i + ahead]} * 8], 1);
                        region[size_t{order[i]} * 8 + (i & 7)] += i;
                      }
                    }));
  }
  return best;
}

// A batch grouped by shard: keys of shard s are keys[begin[s] .. begin[s + 1]).
struct Batch {
  std::vector<Key> keys;
  std::vector<size_t> begin;
  std::span<const Key> of(size_t s) const {
    return {keys.data() + begin[s], begin[s + 1] - begin[s]};
  }
};

Batch group(std::vector<Key> keys) {
  Batch batch;
  std::vector<size_t> count(kShards + 1);
  for (const Key key : keys) ++count[shard_of(key, kShards) + 1];
  for (size_t s = 0; s < kShards; ++s) count[s + 1] += count[s];
  batch.begin = count;
  batch.keys.resize(keys.size());
  for (const Key key : keys) batch.keys[count[shard_of(key, kShards)]++] = key;
  return batch;
}

struct Table {
  explicit Table(const TableOptions& o)
      : options(o),
        optimizer(std::move(make_optimizer(o.optimizer)).value()),
        arena(make_row_arena(o)) {
    for (uint32_t s = 0; s < kShards; ++s) shards.emplace_back(o, optimizer.get(), arena);
  }

  void pull(const Batch& b, float* out, bool hints) const {
    for (size_t s = 0; s < kShards; ++s) {
      if (hints && s + 1 < kShards) shards[s + 1].prefetch(b.of(s + 1));
      shards[s].pull(b.of(s), out + b.begin[s] * options.dim);
    }
  }
  void push(const Batch& b, const float* gradients, const uint32_t* counts, bool hints) {
    for (size_t s = 0; s < kShards; ++s) {
      if (hints && s + 1 < kShards) shards[s + 1].prefetch(b.of(s + 1));
      shards[s].push(b.of(s), gradients + b.begin[s] * options.dim, counts);
    }
  }
  TableOptions options;
  std::unique_ptr<const Optimizer> optimizer;
  std::shared_ptr<RowArena> arena;
  std::vector<SparseShard> shards;
};

Key nth_key(uint64_t i) {
  return hash_pair(i, 123);
}

// Fills by batches of new keys; ns per row.
double fill(Table& table, size_t keys) {
  std::vector<float> gradients(kBatch * table.options.dim, 0.01F);
  std::vector<uint32_t> counts(kBatch, 1);
  double seconds = 0;
  for (size_t done = 0; done < keys; done += kBatch) {
    std::vector<Key> fresh(std::min(kBatch, keys - done));
    for (size_t i = 0; i < fresh.size(); ++i) fresh[i] = nth_key(done + i);
    const Batch batch = group(std::move(fresh));
    const double start = cpu_seconds();
    table.push(batch, gradients.data(), counts.data(), false);
    seconds += cpu_seconds() - start;
  }
  return seconds / static_cast<double>(keys) * 1e9;
}

std::vector<Batch> random_batches(size_t n, size_t keys, uint64_t seed) {
  Random random(seed);
  std::vector<Batch> batches;
  for (size_t b = 0; b < n; ++b) {
    // Unique: a random start and an odd step walk through a power of two without repeating.
    size_t mask = 1;
    while (mask < keys) mask *= 2;
    --mask;
    std::vector<Key> chosen;
    uint64_t at = random.next();
    const uint64_t step = random.next() | 1;
    while (chosen.size() < std::min(kBatch, keys)) {
      if ((at & mask) < keys) chosen.push_back(nth_key(at & mask));
      at += step;
    }
    batches.push_back(group(std::move(chosen)));
  }
  return batches;
}

struct Times {
  double pull = 1e30;
  double push = 1e30;
  double both = 1e30;
  double push_cold = 1e30;  // push of rows that were not pulled shortly before
};

Times measure(Table& table, const std::vector<Batch>& batches, bool hints) {
  const size_t dim = table.options.dim;
  std::vector<float> values(kBatch * dim);
  std::vector<float> gradients(kBatch * dim, 0.01F);
  std::vector<uint32_t> counts(kBatch, 1);
  const double rows = static_cast<double>(batches.size() * batches[0].keys.size());
  Times best;
  for (int round = 0; round < kRounds; ++round) {
    double pull = 0;
    double push = 0;
    double cold = 0;
    for (const Batch& b : batches) {
      const double t0 = cpu_seconds();
      table.pull(b, values.data(), hints);
      const double t1 = cpu_seconds();
      table.push(b, gradients.data(), counts.data(), hints);
      pull += t1 - t0;
      push += cpu_seconds() - t1;
    }
    for (const Batch& b : batches) {
      const double t0 = cpu_seconds();
      table.push(b, gradients.data(), counts.data(), hints);
      cold += cpu_seconds() - t0;
    }
    best.pull = std::min(best.pull, pull / rows * 1e9);
    best.push = std::min(best.push, push / rows * 1e9);
    best.both = std::min(best.both, (pull + push) / rows * 1e9);
    best.push_cold = std::min(best.push_cold, cold / rows * 1e9);
  }
  return best;
}

struct Space {
  double load = 0;
  double index_lines = 0;
  double weight_lines = 0;
  double row_lines = 0;
  double stride = 0;
  double payload = 0;
  double overhead = 0;        // bytes per key beyond payload, of what shards hold
  double overhead_arena = 0;  // the same, of what the arena took from the system
};

Space space(const Table& table, size_t keys) {
  Space sum;
  double held = 0;
  for (const SparseShard& shard : table.shards) {
    const SparseShard::Figures f = shard.figures();
    sum.load += f.index_load / kShards;
    sum.index_lines += f.index_lines / kShards;
    sum.weight_lines = f.weight_lines;
    sum.row_lines = f.row_lines;
    sum.stride = f.row_stride;
    held += static_cast<double>(f.index_bytes + f.row_bytes);
  }
  const auto n = static_cast<double>(keys);
  sum.payload = static_cast<double>(table.shards[0].saved_row_bytes() - sizeof(Key));
  sum.overhead = held / n - sum.payload;
  sum.overhead_arena = static_cast<double>(table.arena->block_bytes()) / n - sum.payload;
  return sum;
}

void report(const TableOptions& o, size_t keys, const Space& s, double fill_ns, double line_ns,
            const Times& plain, const Times& hinted) {
  const double pull_lines = s.index_lines + s.weight_lines;
  const double push_lines = s.index_lines + s.row_lines;
  const double bound = (pull_lines + push_lines) * line_ns;
  const double cold_bound = push_lines * line_ns;
  fmt::print("\n{} keys, dim {} {}\n", with_commas(keys), o.dim, o.optimizer.rule);
  fmt::print("  row: payload {} B, stride {:.1f} B; index load {:.2f}\n", s.payload, s.stride,
             s.load);
  fmt::print("  lines: index {:.2f}, pulled part of row {:.2f}, row {:.2f}; pull + push {:.2f}\n",
             s.index_lines, s.weight_lines, s.row_lines, pull_lines + push_lines);
  fmt::print("  beyond payload: {:.1f} B/key ({:.1f} with the arena's free memory), target 24\n",
             s.overhead, s.overhead_arena);
  fmt::print("  memory: {:.2f} ns per random line; bound {:.1f} ns per row\n", line_ns, bound);
  fmt::print("  {:<14}{:>9}{:>9}{:>12}{:>8}{:>12}{:>8}\n", "ns per row", "pull", "push",
             "pull+push", "ratio", "push cold", "ratio");
  const auto line = [&](const char* name, const Times& t) {
    fmt::print("  {:<14}{:>9.1f}{:>9.1f}{:>12.1f}{:>8.2f}{:>12.1f}{:>8.2f}\n", name, t.pull, t.push,
               t.both, t.both / bound, t.push_cold, t.push_cold / cold_bound);
  };
  line("plain", plain);
  line("with hints", hinted);
  fmt::print("  first push of a new key: {:.0f} ns per row\n", fill_ns);
  fmt::print(
      "{{\"bench\":\"table\",\"keys\":{},\"dim\":{},\"rule\":\"{}\",\"payload_bytes\":{},"
      "\"stride_bytes\":{:.2f},\"index_load\":{:.3f},\"lines_pull\":{:.3f},\"lines_push\":{:.3f},"
      "\"line_ns\":{:.3f},\"pull_ns\":{:.2f},\"push_ns\":{:.2f},\"row_ns\":{:.2f},"
      "\"push_cold_ns\":{:.2f},\"plain_row_ns\":{:.2f},\"bound_ns\":{:.2f},\"ratio\":{:.3f},"
      "\"ratio_push_cold\":{:.3f},\"overhead_bytes\":{:.2f},\"overhead_arena_bytes\":{:.2f},"
      "\"insert_ns\":{:.1f}}}\n",
      keys, o.dim, o.optimizer.rule, s.payload, s.stride, s.load, pull_lines, push_lines, line_ns,
      hinted.pull, hinted.push, hinted.both, hinted.push_cold, plain.both, bound,
      hinted.both / bound, hinted.push_cold / cold_bound, s.overhead, s.overhead_arena, fill_ns);
  std::fflush(stdout);
}

// Saves every shard and loads it into a second table; ns per row of each.
void save_and_load(const Table& table, size_t keys) {
  Table copy(table.options);
  std::string saved;
  double save = 0;
  double load = 0;
  for (uint32_t s = 0; s < kShards; ++s) {
    saved.clear();
    const double t0 = cpu_seconds();
    table.shards[s].save_rows(&saved);
    const double t1 = cpu_seconds();
    const Status status = copy.shards[s].load_rows(saved, s, kShards);
    FLUX_CHECK(status.is_ok(), "{}", status.message());
    save += t1 - t0;
    load += cpu_seconds() - t1;
  }
  const auto n = static_cast<double>(keys);
  fmt::print("\n{} keys, dim {}: save {:.0f} ns per row, load {:.0f} ns per row\n",
             with_commas(keys), table.options.dim, save / n * 1e9, load / n * 1e9);
}

void run(size_t keys, uint32_t dim, size_t batches) {
  TableOptions options;
  options.dim = dim;
  size_t bytes = 0;
  double fill_ns = 0;
  Space s;
  Times plain;
  Times hinted;
  {
    Table table(options);
    fill_ns = fill(table, keys);
    s = space(table, keys);
    bytes = table.arena->block_bytes();
    plain = measure(table, random_batches(batches, keys, 1), false);
    hinted = measure(table, random_batches(batches, keys, 2), true);
    if (keys <= kCopyKeysMax) save_and_load(table, keys);
  }
  report(options, keys, s, fill_ns, line_cost_ns(bytes), plain, hinted);
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  std::vector<size_t> keys;
  std::vector<uint32_t> dims;
  size_t batches = 50;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--keys") keys.push_back(value);
    if (flag == "--dim") dims.push_back(static_cast<uint32_t>(value));
    if (flag == "--batches") batches = value;
  }
  if (keys.empty()) keys = {1000000, 10000000};
  if (dims.empty()) dims = {10, 1};
  for (const size_t n : keys) {
    for (const uint32_t dim : dims) flux::run(n, dim, batches);
  }
  return 0;
}
