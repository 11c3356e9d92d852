#include "flux/server/job_namespace.h"

#include <sys/resource.h>

#include "flux/base/key.h"

namespace flux {
namespace {

constexpr Key kRecordMask = (1ULL << 56) - 1;  // the rest marks keys made from record numbers

uint64_t expected_count(std::span<const ExpectedCount> expected, uint64_t record) {
  uint64_t count = 0;
  for (const ExpectedCount& part : expected) count += record < part.records ? part.repeats : 0;
  return count;
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
  return job_totals(server, server.primaries().shards, rows, expected);
}

JobTotals job_totals(const Server& server, std::span<const ShardId> shards, bool rows,
                     std::span<const ExpectedCount> expected) {
  const ServerTotals totals = server.totals(shards);
  JobTotals sum;
  sum.rows = totals.rows;
  sum.occurrences = totals.occurrences;
  sum.memory_bytes = totals.memory_bytes;
  sum.dense = totals.dense;
  sum.pulls = totals.pulls;
  sum.pushes = totals.pushes;
  sum.duplicates = totals.duplicates;
  sum.refused = totals.refused;
  if (!rows) return sum;
  sum.content_hash = server.content_hash(shards);
  if (expected.empty()) return sum;
  server.for_each_row(shards, [&](Key key, uint32_t count) {
    const uint64_t due = expected_count(expected, key & kRecordMask);
    sum.expected_seen += due;
    if (count > due) sum.doubled += count - due;
    if (count < due) sum.lost += due - count;
  });
  return sum;
}

JobNamespace::JobNamespace(OpenJob job, std::shared_ptr<Server> server)
    : job_(std::move(job)), server_(std::move(server)) {}

Result<std::vector<ShardState>> JobNamespace::assign(const Assignments& places) {
  return server_->assign(places);
}

Result<std::vector<ShardState>> JobNamespace::seal(const AdminCall& call) {
  return server_->seal(call);
}

void JobNamespace::copy(const AdminCall& call, ServerId target, const std::string& address,
                        States done) {
  server_->copy(call, target, address, std::move(done));
}

Status JobNamespace::load(const AdminCall& call, const LoadJob& load) {
  return server_->load(call, load);
}

void JobNamespace::open_pass(const AdminCall& call, uint32_t pass, uint64_t geometry, Done done) {
  server_->open_pass(call, pass, geometry, std::move(done));
}

void JobNamespace::close_below(const AdminCall& call, uint32_t pass, Done done) {
  server_->close_below(call, pass, std::move(done));
}

Result<std::vector<uint32_t>> JobNamespace::marked(const AdminCall& call, const BlockId& section,
                                                   uint32_t blocks, bool any) const {
  return server_->marked(call, section, blocks, any);
}

void JobNamespace::marked(const AdminCall& call, const BlockId& section, uint32_t blocks, bool any,
                          std::function<void(Result<std::vector<uint32_t>>)> done) {
  server_->marked(call, section, blocks, any, std::move(done));
}

void JobNamespace::mark(const AdminCall& call, uint64_t geometry, std::span<const BatchId> ids,
                        Verdict verdict, Done done) {
  server_->mark(call, geometry, ids, verdict, std::move(done));
}

Status JobNamespace::void_member(const AdminCall& call, uint64_t round, const BlockId& block) {
  return server_->void_member(call, round, block);
}

Result<std::vector<SavedShard>> JobNamespace::save(const AdminCall& call, const std::string& folder,
                                                   uint64_t number, uint64_t committed) {
  return server_->save(call, folder, number, committed);
}

Result<JobTotals> JobNamespace::totals(const AdminCall& call, bool rows,
                                       std::span<const ExpectedCount> expected) const {
  FLUX_RETURN_IF_ERROR(server_->check_call(call, false));
  JobTotals sum = job_totals(*server_, call.shards, rows, expected);
  add_process_figures(&sum);
  return sum;
}

void JobNamespace::close() {
  server_->close();
}

}  // namespace flux
