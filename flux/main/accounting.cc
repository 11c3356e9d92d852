#include "flux/main/accounting.h"

#include <algorithm>

#include "flux/server/job_namespace.h"

namespace flux {
namespace {

// What the batches of one phase should have left in the counters.
struct Due {
  uint64_t expected = 0, skipped = 0, partly = 0;
  uint64_t set_aside = 0;  // bad records, which no batch has
  uint64_t examples() const { return expected - skipped; }
};

bool is_open(const ClosedPass& pass) {
  return pass.name == "open" && pass.geometry == 0;
}

std::vector<Due> dues_of(std::span<const ClosedPass> passes, std::span<const OpenPhase> open,
                         size_t phases) {
  std::vector<Due> dues(phases);
  for (const ClosedPass& pass : passes) {
    if (is_open(pass) && !open.empty()) continue;
    for (size_t p = 0; p < phases; ++p) {
      dues[p].expected += pass.records * pass.repeats / phases;
      dues[p].set_aside += pass.bad_records * pass.repeats / phases;
      dues[p].skipped +=
          phases == 1 ? pass.skipped_examples : (p < pass.phases() ? pass.skipped_by_phase[p] : 0);
    }
  }
  for (size_t p = 0; p < std::min(phases, open.size()); ++p) {
    dues[p].expected += open[p].all;
    dues[p].partly += open[p].any - open[p].all;
  }
  return dues;
}

Accounting sum_of(std::span<const Due> dues) {
  Accounting sum;
  for (const Due& due : dues) {
    sum.expected += due.expected + due.set_aside;
    sum.skipped += due.skipped + due.set_aside;
  }
  return sum;
}

void finish(Accounting* sum) {
  const uint64_t due = sum->expected - sum->skipped;
  sum->applied = due - std::min(sum->lost, due);
}

// Dense shards count examples: the worst of them stands.
void account_dense(const DenseExamples& found, const Due& due, Accounting* sum) {
  if (!found.any()) return;
  if (found.max > due.examples() + due.partly)
    sum->doubled = std::max(sum->doubled, found.max - due.examples() - due.partly);
  if (found.min < due.examples()) sum->lost = std::max(sum->lost, due.examples() - found.min);
}

bool changes_table(const CountedModel& model, size_t phase, size_t table) {
  return model.phases.empty() || model.phases[phase].dims[table] > 0;
}

// A row's counter has 32 bits and may wrap; sums stay right modulo 2^32, so differences up to 2^31
// are seen as they are.
void account_rows(const JobTotals& totals, std::span<const Due> dues, const CountedModel& model,
                  Accounting* sum) {
  const uint64_t slots = model.slots;
  const auto examples = [&](int64_t n) { return (static_cast<uint64_t>(n) + slots - 1) / slots; };
  for (size_t t = 0; t < totals.occurrences.size(); ++t) {
    uint64_t least = 0, partly = 0;
    for (size_t p = 0; p < dues.size(); ++p) {
      if (!changes_table(model, p, t)) continue;
      least += dues[p].examples() * slots;
      partly += dues[p].partly * slots;
    }
    const int64_t more = static_cast<int32_t>(static_cast<uint32_t>(totals.occurrences[t] - least));
    const auto most = static_cast<int64_t>(partly);
    if (more > most) sum->doubled = std::max(sum->doubled, examples(more - most));
    if (more < 0) sum->lost = std::max(sum->lost, examples(-more));
  }
}

// Rows of the first table, which some of the phases change.
void account_by_key(const JobTotals& totals, std::span<const Due> dues, const CountedModel& model,
                    Accounting* sum) {
  uint64_t expected = 0, skipped = 0;
  for (size_t p = 0; p < dues.size(); ++p) {
    if (!changes_table(model, p, 0)) continue;
    expected += dues[p].expected;
    skipped += dues[p].skipped;
  }
  sum->doubled = totals.doubled;
  sum->lost = totals.lost + expected - totals.expected_seen;  // and records without any row
  sum->lost -= std::min(sum->lost, skipped);  // which ones were skipped, no counter says
}

}  // namespace

std::vector<ExpectedCount> expected_counts(std::span<const ClosedPass> passes) {
  std::vector<ExpectedCount> expected;
  for (const ClosedPass& pass : passes) expected.push_back({pass.records, pass.repeats});
  if (expected.empty()) expected.push_back({0, 0});  // an empty list would ask for nothing
  return expected;
}

std::vector<Accounting> account_phases(const JobTotals& totals, std::span<const ClosedPass> passes,
                                       std::span<const OpenPhase> open, size_t phases) {
  std::vector<Accounting> out;
  for (const Due& due : dues_of(passes, open, phases)) {
    Accounting one = sum_of({&due, 1});
    if (out.size() < totals.dense.size()) account_dense(totals.dense[out.size()], due, &one);
    finish(&one);
    out.push_back(one);
  }
  return out;
}

Accounting account(const JobTotals& totals, std::span<const ClosedPass> passes,
                   std::span<const OpenPhase> open, const CountedModel& model) {
  const size_t phases = std::max<size_t>(1, model.phases.size());
  const std::vector<Due> dues = dues_of(passes, open, phases);
  Accounting sum = sum_of(dues);
  if (model.key_per_example) {
    account_by_key(totals, dues, model, &sum);
  } else if (model.slots > 0) {
    account_rows(totals, dues, model, &sum);
  }
  uint64_t lost = 0, doubled = 0;
  for (const Accounting& one : account_phases(totals, passes, open, phases)) {
    lost += one.lost;
    doubled += one.doubled;
  }
  sum.lost = std::max(sum.lost, lost);
  sum.doubled = std::max(sum.doubled, doubled);
  finish(&sum);
  return sum;
}

Accounting account(const JobTotals& totals, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly) {
  std::vector<ClosedPass> closed;
  OpenPhase open{0, partly};
  for (const ClosedPass& pass : passes) {
    if (is_open(pass)) {
      open.all += pass.records * pass.repeats;
      open.any += pass.records * pass.repeats;
    } else {
      closed.push_back(pass);
    }
  }
  return account(totals, closed, {&open, 1}, {slots, key_per_example, {}});
}

Accounting account(const Server& server, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly) {
  return account(job_totals(server, key_per_example, expected_counts(passes)), passes, slots,
                 key_per_example, partly);
}

}  // namespace flux
