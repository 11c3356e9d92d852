#include "flux/main/accounting.h"

#include <algorithm>

#include "flux/server/job_namespace.h"

namespace flux {
namespace {

void account_by_key(const JobTotals& totals, Accounting* sum) {
  sum->doubled = totals.doubled;
  sum->lost = totals.lost + sum->expected - totals.expected_seen;  // and records without any row
  sum->lost -= std::min(sum->lost, sum->skipped);  // which ones were skipped, no counter says
}

}  // namespace

std::vector<ExpectedCount> expected_counts(std::span<const ClosedPass> passes) {
  std::vector<ExpectedCount> expected;
  for (const ClosedPass& pass : passes) expected.push_back({pass.records, pass.repeats});
  if (expected.empty()) expected.push_back({0, 0});  // an empty list would ask for nothing
  return expected;
}

Accounting account(const Server& server, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly) {
  return account(job_totals(server, key_per_example, expected_counts(passes)), passes, slots,
                 key_per_example, partly);
}

Accounting account(const JobTotals& totals, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly) {
  Accounting sum;
  for (const ClosedPass& pass : passes) {
    sum.expected += pass.records * pass.repeats;
    sum.skipped += pass.skipped_examples;
  }
  if (key_per_example) {
    account_by_key(totals, &sum);
  } else if (slots > 0) {
    const uint64_t least = (sum.expected - sum.skipped) * slots;
    const auto examples = [&](int64_t n) { return (static_cast<uint64_t>(n) + slots - 1) / slots; };
    // A row's counter has 32 bits and may wrap; sums stay right modulo 2^32, so differences up to
    // 2^31 are seen as they are.
    for (const uint64_t found : totals.occurrences) {
      const int64_t more = static_cast<int32_t>(static_cast<uint32_t>(found - least));
      const auto most = static_cast<int64_t>(partly * slots);
      if (more > most) sum.doubled = std::max(sum.doubled, examples(more - most));
      if (more < 0) sum.lost = std::max(sum.lost, examples(-more));
    }
  }
  // Dense shards count examples, too: the worst of them stands.
  if (totals.has_dense) {
    const uint64_t due = sum.expected - sum.skipped;
    if (totals.dense_examples_max > due + partly)
      sum.doubled = std::max(sum.doubled, totals.dense_examples_max - due - partly);
    if (totals.dense_examples_min < due)
      sum.lost = std::max(sum.lost, due - totals.dense_examples_min);
  }
  sum.applied = sum.expected - sum.skipped - std::min(sum.lost, sum.expected - sum.skipped);
  return sum;
}

}  // namespace flux
