#include "flux/metrics/group_metrics.h"

#include <algorithm>

#include "flux/metrics/score_runs.h"

namespace flux {
namespace {

struct Row {
  uint64_t group;
  float prediction, weight;
  bool positive;
  auto operator<=>(const Row&) const = default;
};

std::vector<Row> sorted_rows(const ScoredBatch& records) {
  std::vector<Row> rows(records.predictions.size());
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = {records.groups[i], records.predictions[i] + 0.0F,
               records.weights.empty() ? 1.0F : records.weights[i], records.labels[i] > 0.5F};
  std::sort(rows.begin(), rows.end());
  return rows;
}

double weight_of(std::span<const Row> rows) {
  double sum = 0;
  for (const Row& row : rows) sum += row.weight;
  return sum;
}

double weight_of(std::span<const Row> rows, bool positive) {
  double sum = 0;
  for (const Row& row : rows) sum += row.positive == positive ? row.weight : 0;
  return sum;
}

// The examples of one prediction at the end of `rows`.
std::span<const Row> last_run(std::span<const Row> rows) {
  size_t begin = rows.size() - 1;
  while (begin > 0 && rows[begin - 1].prediction == rows.back().prediction) --begin;
  return rows.subspan(begin);
}

AucSum group_auc(std::span<const Row> rows) {
  AucSum sum;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    while (end < rows.size() && rows[end].prediction == rows[i].prediction) ++end;
    const auto run = rows.subspan(i, end - i);
    sum.add(weight_of(run, true), weight_of(run, false));
    i = end;
  }
  return sum;
}

struct FirstK {
  double weight = 0, positives = 0;
};

// The k best of a group that is sorted by rising prediction.
FirstK first_k(std::span<const Row> rows, uint32_t k) {
  FirstK out;
  for (size_t left = k; left > 0 && !rows.empty();) {
    const auto run = last_run(rows);
    const double share =
        run.size() <= left ? 1 : static_cast<double>(left) / static_cast<double>(run.size());
    out.weight += share * weight_of(run);
    out.positives += share * weight_of(run, true);
    left -= std::min(left, run.size());
    rows = rows.first(rows.size() - run.size());
  }
  return out;
}

class GroupSums {
 public:
  explicit GroupSums(std::span<const uint32_t> at) {
    for (const uint32_t k : at) out_.at.push_back({k, 0, 0});
  }

  void add(std::span<const Row> rows) {
    ++out_.groups;
    const AucSum auc = group_auc(rows);
    if (auc.both_classes()) {
      const double impressions = weight_of(rows);
      ++out_.ranked;
      auc_sum_ += auc.value();
      auc_by_impressions_ += auc.value() * impressions;
      impressions_ += impressions;
    }
    const double positives = weight_of(rows, true);
    if (positives > 0) ++with_positives_;
    for (AtK& at : out_.at) {
      const FirstK first = first_k(rows, at.k);
      if (first.weight > 0) at.precision += first.positives / first.weight;
      if (positives > 0) at.recall += first.positives / positives;
    }
  }

  GroupValues result() {
    if (out_.ranked > 0) {
      out_.gauc = auc_by_impressions_ / impressions_;
      out_.uauc = auc_sum_ / static_cast<double>(out_.ranked);
    }
    for (AtK& at : out_.at) {
      if (out_.groups > 0) at.precision /= static_cast<double>(out_.groups);
      if (with_positives_ > 0) at.recall /= static_cast<double>(with_positives_);
    }
    return out_;
  }

 private:
  GroupValues out_;
  uint64_t with_positives_ = 0;
  double auc_sum_ = 0, auc_by_impressions_ = 0, impressions_ = 0;
};

}  // namespace

GroupValues group_values(const ScoredBatch& records, std::span<const uint32_t> at) {
  GroupSums sums(at);
  if (records.groups.empty()) return sums.result();
  const std::vector<Row> rows = sorted_rows(records);
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    while (end < rows.size() && rows[end].group == rows[i].group) ++end;
    sums.add(std::span(rows).subspan(i, end - i));
    i = end;
  }
  return sums.result();
}

}  // namespace flux
