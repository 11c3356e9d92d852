#include "flux/main/accounting.h"

#include <algorithm>

namespace flux {
namespace {

constexpr Key kExampleKeyMask = (1ULL << 56) - 1;  // the rest marks keys made from record numbers

// Occurrences that record `r` should have over all passes.
uint64_t expected_count(std::span<const ClosedPass> passes, uint64_t r) {
  uint64_t count = 0;
  for (const ClosedPass& pass : passes) count += r < pass.records ? pass.repeats : 0;
  return count;
}

void account_by_key(const Server& server, std::span<const ClosedPass> passes, Accounting* sum) {
  uint64_t seen_expected = 0;
  server.for_each_row([&](Key key, uint32_t count) {
    const uint64_t expected = expected_count(passes, key & kExampleKeyMask);
    seen_expected += expected;
    if (count > expected) sum->doubled += count - expected;
    if (count < expected) sum->lost += expected - count;
  });
  sum->lost += sum->expected - seen_expected;      // records without any row
  sum->lost -= std::min(sum->lost, sum->skipped);  // which ones were skipped, no counter says
}

}  // namespace

Accounting account(const Server& server, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly) {
  Accounting sum;
  for (const ClosedPass& pass : passes) {
    sum.expected += pass.records * pass.repeats;
    sum.skipped += pass.skipped_examples;
  }
  const ServerTotals totals = server.totals();
  if (key_per_example) {
    account_by_key(server, passes, &sum);
  } else {
    const uint64_t least = (sum.expected - sum.skipped) * slots;
    const auto examples = [&](int64_t n) {
      return (static_cast<uint64_t>(n) + slots - 1) / std::max(1U, slots);
    };
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
  if (totals.dense_examples_max > 0) {
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
