#include "flux/server/job_namespace.h"

#include <algorithm>

#include <sys/resource.h>

#include "flux/base/key.h"
#include "flux/checkpoint/store.h"

namespace flux {
namespace {

constexpr Key kRecordMask = (1ULL << 56) - 1;  // the rest marks keys made from record numbers

uint64_t expected_count(std::span<const ExpectedCount> expected, uint64_t record) {
  uint64_t count = 0;
  for (const ExpectedCount& part : expected) count += record < part.records ? part.repeats : 0;
  return count;
}

bool same_load(const LoadJob& a, const LoadJob& b) {
  const auto same_shard = [](const ShardToLoad& x, const ShardToLoad& y) {
    return x.shard == y.shard && x.name == y.name && x.bytes == y.bytes && x.hash == y.hash;
  };
  return a.folder == b.folder && a.number == b.number && a.closed_below == b.closed_below &&
         std::equal(a.shards.begin(), a.shards.end(), b.shards.begin(), b.shards.end(), same_shard);
}

void add_process_figures(JobTotals* sum) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  sum->cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  sum->rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

JobTotals job_totals(const Server& server, bool rows, std::span<const ExpectedCount> expected) {
  const ServerTotals totals = server.totals();
  JobTotals sum;
  sum.rows = totals.rows;
  sum.occurrences = totals.occurrences;
  sum.memory_bytes = totals.memory_bytes;
  sum.dense_examples_min = totals.dense_examples_min;
  sum.dense_examples_max = totals.dense_examples_max;
  sum.has_dense = totals.has_dense;
  sum.pulls = totals.pulls;
  sum.pushes = totals.pushes;
  if (!rows) return sum;
  sum.content_hash = server.content_hash();
  if (expected.empty()) return sum;
  server.for_each_row([&](Key key, uint32_t count) {
    const uint64_t due = expected_count(expected, key & kRecordMask);
    sum.expected_seen += due;
    if (count > due) sum.doubled += count - due;
    if (count < due) sum.lost += due - count;
  });
  return sum;
}

JobNamespace::JobNamespace(OpenJob job, std::unique_ptr<Server> server, Files* files)
    : job_(std::move(job)), server_(std::move(server)), files_(files) {}

Status JobNamespace::load(const LoadJob& load) {
  const std::lock_guard lock(load_mutex_);
  if (loaded_ && same_load(*loaded_, load)) return load_status_;
  if (loaded_)
    return invalid("checkpoint {} is loaded already; to load {} open the job anew", loaded_->number,
                   load.number);
  loaded_ = load;
  load_status_ = load_shards(load);
  return load_status_;
}

Status JobNamespace::load_shards(const LoadJob& load) {
  const CheckpointStore store(load.folder, files_);
  std::vector<ShardId> named;
  for (const ShardToLoad& part : load.shards) named.push_back(part.shard);
  if (named != server_->owned())
    return error(Code::kCorrupt, "{}: {} shards to load, this server has {} others",
                 store.path_of(load.number), named.size(), server_->owned().size());
  for (const ShardToLoad& part : load.shards) {
    FLUX_ASSIGN_OR_RETURN(const ShardImage image,
                          store.read_shard(load.number, {part.name, part.bytes, part.hash}));
    if (image.replica.shard() != part.shard)
      return error(Code::kCorrupt, "{}: shard {} where {} is expected", part.name,
                   image.replica.shard(), part.shard);
    const Status status = server_->load(image);
    if (!status.is_ok()) return status.with_context(store.path_of(load.number));
  }
  server_->close_below(load.closed_below);
  return Status::ok();
}

Status JobNamespace::open_pass(uint32_t pass, uint64_t geometry) {
  if (geometry == 0) return invalid("pass {}: a geometry's hash is never 0", pass);
  return server_->open_pass(pass, geometry);
}

Status JobNamespace::close_below(uint32_t pass) {
  server_->close_below(pass);
  return Status::ok();
}

Result<std::vector<uint32_t>> JobNamespace::marked(const BlockId& section, uint32_t blocks,
                                                   bool any) const {
  if (blocks > kBlocksPerSectionMax)
    return invalid("{} blocks in a section, at most {} are possible", blocks, kBlocksPerSectionMax);
  return any ? server_->marked_by_any(section, blocks) : server_->marked_by_all(section, blocks);
}

Status JobNamespace::mark(uint64_t geometry, std::span<const BatchId> ids, Verdict verdict) {
  return server_->mark(geometry, ids, verdict);
}

Status JobNamespace::void_member(uint64_t round, const BlockId& block) {
  return server_->void_member(round, block);
}

Result<std::vector<SavedShard>> JobNamespace::save(const std::string& folder, uint64_t number) {
  return server_->save(folder, number);
}

Result<JobTotals> JobNamespace::totals(bool rows, std::span<const ExpectedCount> expected) const {
  JobTotals sum = job_totals(*server_, rows, expected);
  add_process_figures(&sum);
  return sum;
}

void JobNamespace::close() {
  server_->seal();
}

}  // namespace flux
