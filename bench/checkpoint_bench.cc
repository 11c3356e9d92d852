// Checkpoint benchmark: what saving and restoring a table costs.
//
//   checkpoint_bench [--keys N] [--dim D] [--threads N] [--share PERCENT] [--shards N]
//                    [--slice-kib N] [--folder PATH]
//
// A server of N shards (default 256) is filled with N rows (default 10,000,000 of 16 floats, rule
// sgd), saved whole, then pushed to (PERCENT of its rows, default 5) and saved as increments, three
// times, while another thread pushes small batches and notes how long each push takes. Then the
// chain is read into a second server, whose content must be equal. Wall and CPU seconds; the last
// line is JSON. Failure: exit code 1 with the reason.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "flux/base/random.h"
#include "flux/base/text.h"
#include "flux/checkpoint/store.h"
#include "flux/coordinator/checkpointing.h"
#include "flux/server/server.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr uint64_t kLife = 1, kGeometry = 2;

struct Arguments {
  uint64_t keys = 10'000'000;
  uint32_t dim = 16;
  uint32_t threads = 2;
  uint32_t shards = 256;
  uint64_t slice_kib = 1024;
  uint64_t share = 5;
  std::string folder = "checkpoint_bench.tmp";
};

struct Clock {
  double wall, cpu;
  static Clock now() {
    timespec wall{}, cpu{};
    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    const auto seconds = [](const timespec& t) {
      return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
    };
    return {seconds(wall), seconds(cpu)};
  }
  Clock since() const {
    const Clock n = now();
    return {n.wall - wall, n.cpu - cpu};
  }
};

ServerOptions server_options(const Arguments& a) {
  ServerOptions o;
  o.shards = a.shards;
  o.tables.resize(1);
  o.tables[0].dim = a.dim;
  o.tables[0].optimizer = {.rule = "sgd", .lr = 0.1F};
  o.incarnation = kLife;
  o.epoch = {1, 1};
  o.file_threads = a.threads;
  o.slice_bytes = a.slice_kib << 10;
  return o;
}

// Pushes keys with one gradient for all; every push is a batch of its own.
class Pusher {
 public:
  Pusher(Server* server, uint32_t dim) : server_(server), dim_(dim) {}

  void push(const std::vector<Key>& keys, uint32_t batch) {
    const uint32_t n = server_->sparse_shards();
    std::vector<std::vector<Key>> by_shard(n);
    for (const Key key : keys) by_shard[shard_of(key, n)].push_back(key);
    std::vector<uint64_t> sorted;
    std::vector<uint32_t> begin{0};
    std::vector<ShardId> shards(n);
    for (uint32_t s = 0; s < n; ++s) {
      shards[s] = s;
      sorted.insert(sorted.end(), by_shard[s].begin(), by_shard[s].end());
      begin.push_back(static_cast<uint32_t>(sorted.size()));
    }
    const std::vector<ShardEpoch> epochs(n, {1, 1});
    const std::vector<float> gradients(sorted.size() * dim_, 0.01F);
    const std::vector<uint32_t> counts(sorted.size(), 1);
    const std::vector<const float*> tables{gradients.data()};
    PushRequest request;
    const BatchId id{{0, 0, 0, batch / 32}, static_cast<uint8_t>(batch % 32), 32};
    request.claim = {kLife, kGeometry, {id}, Verdict::kApplied};
    request.shards = shards;
    request.epochs = epochs;
    request.keys = {sorted.data(), begin.data()};
    request.counts = counts.data();
    request.tables = tables;
    request.examples = 1;
    const auto start = std::chrono::steady_clock::now();
    server_->push(request, [](const PushReply&) {});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    last_ms_ = took.count();
  }
  double last_ms() const { return last_ms_; }

 private:
  Server* server_;
  uint32_t dim_;
  double last_ms_ = 0;
};

Key nth_key(uint64_t i) {
  return hash_pair(i, 123);
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// Small pushes until told to stop: their times in milliseconds.
std::vector<double> push_beside(Server* server, const Arguments& a, uint32_t first,
                                const std::atomic<bool>* stop) {
  std::vector<double> times;
  Pusher pusher(server, a.dim);
  Random random(first);
  for (uint32_t batch = first; !*stop; ++batch) {
    std::vector<Key> keys;
    for (int i = 0; i < 2000; ++i) keys.push_back(nth_key(random.below(a.keys)));
    pusher.push(keys, batch);
    times.push_back(pusher.last_ms());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return times;
}

// What pushes take when nothing is saved.
std::vector<double> pushes_alone(Server* server, const Arguments& a) {
  std::atomic<bool> stop = false;
  std::vector<double> times;
  std::thread beside([&] { times = push_beside(server, a, 1U << 19, &stop); });
  std::this_thread::sleep_for(std::chrono::seconds(2));
  stop = true;
  beside.join();
  return times;
}

struct Saved {
  Manifest manifest;
  Clock time{};
  uint64_t bytes = 0;
  std::vector<double> pushes;
};

Result<Saved> save(const CheckpointStore& store, const Arguments& a, Server* server,
                   const Manifest* last, uint32_t batch) {
  Saved out;
  FLUX_ASSIGN_OR_RETURN(out.manifest.number, store.begin());
  std::atomic<bool> stop = false;
  std::thread beside([&] { out.pushes = push_beside(server, a, batch, &stop); });
  const Clock start = Clock::now();
  const auto saved = server->save(server->primaries(), a.folder, out.manifest.number,
                                  last != nullptr ? last->number : 0);
  out.time = start.since();
  stop = true;
  beside.join();
  if (!saved.is_ok()) return saved.status();
  for (const SavedShard& shard : saved.value()) out.bytes += shard.bytes;
  FLUX_ASSIGN_OR_RETURN(out.manifest.shards, link_shards(saved.value(), last));
  FLUX_RETURN_IF_ERROR(store.commit(out.manifest));
  const size_t chained = static_cast<size_t>(
      std::count_if(out.manifest.shards.begin(), out.manifest.shards.end(),
                    [](const ShardEntry& shard) { return !shard.chain.empty(); }));
  fmt::print(
      "save {}: {} ({} of {} shards as increments), {:.2f} s, {:.2f} s CPU with pushes beside it; "
      "pushes p50 {:.2f} ms, p99 {:.2f} ms, worst {:.2f} ms of {}\n",
      out.manifest.number, human_bytes(out.bytes), chained, out.manifest.shards.size(),
      out.time.wall, out.time.cpu, percentile(out.pushes, 0.5), percentile(out.pushes, 0.99),
      percentile(out.pushes, 1.0), out.pushes.size());
  std::fflush(stdout);
  return out;
}

Result<Clock> restore(const Arguments& a, const Manifest& m, const Server* live) {
  const uint64_t expected = live->content_hash();
  ServerOptions options = server_options(a);
  options.places = Assignments();
  FLUX_ASSIGN_OR_RETURN(const auto copy, Server::create(options));
  LoadJob load{a.folder, m.number, {}, 0};
  for (ShardId s = 0; s < m.shards.size(); ++s) load.shards.push_back(to_load(m, s));
  AdminCall call = live->primaries();
  for (ShardEpoch& epoch : call.epochs) ++epoch.n;
  const Clock start = Clock::now();
  FLUX_RETURN_IF_ERROR(copy->load(call, load));
  const Clock took = start.since();
  if (copy->content_hash(call.shards) != expected)
    return error(Code::kCorrupt, "the restored rows are not those that were saved");
  return took;
}

Status run(const Arguments& a) {
  FLUX_RETURN_IF_ERROR(remove_all(a.folder));
  const CheckpointStore store(a.folder);
  FLUX_ASSIGN_OR_RETURN(const auto server, Server::create(server_options(a)));
  Status opened;
  server->open_pass(server->primaries(), 0, kGeometry, [&](const Status& s) { opened = s; });
  FLUX_RETURN_IF_ERROR(opened);
  Pusher pusher(server.get(), a.dim);
  uint32_t batch = 0;
  const auto push_range = [&](uint64_t first, uint64_t count) {
    constexpr uint64_t kPush = 50000;
    for (uint64_t done = 0; done < count; done += kPush, ++batch) {
      std::vector<Key> keys;
      for (uint64_t i = 0; i < std::min(kPush, count - done); ++i)
        keys.push_back(nth_key((first + done + i) % a.keys));
      pusher.push(keys, batch);
    }
  };
  push_range(0, a.keys);
  const std::vector<double> alone = pushes_alone(server.get(), a);
  fmt::print("no save: pushes p50 {:.2f} ms, p99 {:.2f} ms, worst {:.2f} ms of {}\n",
             percentile(alone, 0.5), percentile(alone, 0.99), percentile(alone, 1.0), alone.size());
  FLUX_ASSIGN_OR_RETURN(Saved whole, save(store, a, server.get(), nullptr, 1U << 20));
  Saved last = whole;
  for (uint32_t i = 0; i < 3; ++i) {
    push_range(i * a.keys / 3, a.keys * a.share / 100);
    FLUX_ASSIGN_OR_RETURN(last, save(store, a, server.get(), &last.manifest, (2U + i) << 20));
  }
  // Those pushes that came beside the last save are in no file: once more, with nobody beside.
  Manifest final;
  FLUX_ASSIGN_OR_RETURN(final.number, store.begin());
  FLUX_ASSIGN_OR_RETURN(const auto saved, server->save(server->primaries(), a.folder, final.number,
                                                       last.manifest.number));
  FLUX_ASSIGN_OR_RETURN(final.shards, link_shards(saved, &last.manifest));
  FLUX_RETURN_IF_ERROR(store.commit(final));
  FLUX_ASSIGN_OR_RETURN(const Clock took, restore(a, final, server.get()));
  fmt::print("restore of {} rows of {} floats by {} threads: {:.2f} s, {:.2f} s CPU\n",
             with_commas(server->totals().rows), a.dim, a.threads, took.wall, took.cpu);
  fmt::print(
      "{{\"bench\":\"checkpoint\",\"keys\":{},\"dim\":{},\"threads\":{},\"whole_s\":{:.3f},"
      "\"whole_bytes\":{},\"increment_s\":{:.3f},\"increment_bytes\":{},\"push_p99_ms\":{:.3f},"
      "\"alone_p99_ms\":{:.3f},"
      "\"restore_s\":{:.3f},\"restore_cpu_s\":{:.3f}}}\n",
      a.keys, a.dim, a.threads, whole.time.wall, whole.bytes, last.time.wall, last.bytes,
      percentile(whole.pushes, 0.99), percentile(alone, 0.99), took.wall, took.cpu);
  return remove_all(a.folder);
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  flux::Arguments a;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--keys") a.keys = value;
    if (flag == "--dim") a.dim = static_cast<uint32_t>(value);
    if (flag == "--threads") a.threads = static_cast<uint32_t>(value);
    if (flag == "--share") a.share = value;
    if (flag == "--shards") a.shards = static_cast<uint32_t>(value);
    if (flag == "--slice-kib") a.slice_kib = value;
    if (flag == "--folder") a.folder = argv[i + 1];
  }
  const flux::Status status = flux::run(a);
  if (status.is_ok()) return 0;
  fmt::print(stderr, "checkpoint_bench: {}\n", status.message());
  return 1;
}
