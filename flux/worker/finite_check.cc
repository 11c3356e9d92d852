#include "flux/worker/finite_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "flux/base/finite.h"

namespace flux {
namespace {

// Which of the dense parameters: "fc1.weight is nan at element 7".
std::string parameter_text(const Graph& graph, const float* values, size_t at) {
  for (const Parameter& p : graph.parameters())
    if (at >= p.offset && at < p.offset + p.size)
      return fmt::format("{} is {} at element {}", p.name, float_text(values[at]), at - p.offset);
  return fmt::format("the dense weights is {} at element {}", float_text(values[at]), at);
}

// The first thing of one kind (gradients, or weights before the batch) that is not finite.
std::string row_text(const Computed& batch, const std::vector<Buffer<float>>& tables) {
  const ShardedKeys keys = batch.work->plan.sharded();
  for (size_t t = 0; t < batch.tables.size(); ++t) {
    const Buffer<float>& table = tables[batch.tables[t]];
    const std::string& name = batch.graph->tables()[t];
    const size_t dim = batch.graph->inputs().tables.at(name);
    // Before it are no rows of this table.
    const size_t first = batch.work->first_rows[batch.tables[t]] * dim;
    const size_t bad = first + first_not_finite(table.data() + first, table.size() - first);
    if (bad == table.size()) continue;
    return fmt::format("table {} is {} at key {}", name, float_text(table[bad]),
                       keys.keys[bad / dim]);
  }
  return "";
}

std::string gradient_problem(const Computed& batch) {
  const Buffer<float>& dense = batch.work->dense_gradient;
  const size_t bad = first_not_finite(dense.data(), dense.size());
  if (bad < dense.size())
    return "the gradient of " + parameter_text(*batch.graph, dense.data(), bad);
  const std::string rows = row_text(batch, batch.work->row_gradients);
  return rows.empty() ? "" : "the gradient of " + rows;
}

// Gradients and dense parameters, in pieces that members of a team look at one by one.
bool all_finite(const Computed& batch, Team* team) {
  constexpr size_t kPiece = 1U << 15;
  std::vector<std::span<const float>> pieces;
  const auto add = [&](const float* values, size_t n) {
    for (size_t at = 0; at < n; at += kPiece)
      pieces.push_back({values + at, std::min(kPiece, n - at)});
  };
  add(batch.work->dense_gradient.data(), batch.work->dense_gradient.size());
  if (batch.parameters != nullptr) add(batch.parameters, batch.graph->parameter_count());
  for (size_t t = 0; t < batch.tables.size(); ++t) {
    const Buffer<float>& table = batch.work->row_gradients[batch.tables[t]];
    const size_t dim = batch.graph->inputs().tables.at(batch.graph->tables()[t]);
    const size_t first = batch.work->first_rows[batch.tables[t]] * dim;
    add(table.data() + first, table.size() - first);
  }
  std::atomic<bool> finite{true};
  team->run(static_cast<uint32_t>(pieces.size()), [&](uint32_t i, uint32_t) {
    if (first_not_finite(pieces[i].data(), pieces[i].size()) < pieces[i].size()) finite = false;
  });
  return finite;
}

// Of a bad batch: was the model broken already?
std::string weight_problem(const Computed& batch) {
  const std::string rows = row_text(batch, batch.work->rows);
  if (!rows.empty()) return rows;
  return batch.parameters == nullptr ? "" : broken_parameter(*batch.graph, batch.parameters);
}

// The one record whose prediction is not a number, unless many are.
std::string culprit(const Computed& batch) {
  const uint32_t n = batch.work->batch.size;
  const size_t first = first_not_finite(batch.predictions, n);
  if (first == n || first_not_finite(batch.predictions + first + 1, n - first - 1) < n - first - 1)
    return "";
  const BatchItem& item = batch.work->item;
  return item.reader->describe_example(item.id.batch, static_cast<uint32_t>(first));
}

}  // namespace

std::string broken_parameter(const Graph& graph, const float* parameters) {
  const size_t n = graph.parameter_count();
  const size_t bad = first_not_finite(parameters, n);
  return bad < n ? parameter_text(graph, parameters, bad) : "";
}

std::string why_refused(const Computed& batch, Team* team) {
  if (std::isfinite(batch.loss) && all_finite(batch, team)) [[likely]]
    return "";
  std::string problem = gradient_problem(batch);
  if (!std::isfinite(batch.loss)) {
    const std::string loss = fmt::format("the loss is {}", float_text(batch.loss));
    problem = problem.empty() ? loss : loss + " and " + problem;
  }
  // Nothing met it in this batch; it would in another one.
  if (problem.empty()) problem = "a dense parameter is not finite";
  const BatchItem& item = batch.work->item;
  const std::string place = item.reader->describe(item.id.batch);
  problem += "; data: " + (place.empty() ? to_string(item.id) : place);
  const std::string record = culprit(batch);
  if (!record.empty()) problem += "; record: " + record;
  const std::string weights = weight_problem(batch);
  if (!weights.empty())
    problem += "; the model was broken before this batch (" + weights +
               "): it diverged, lower the "
               "learning rate";
  if (problem.size() > kRefusalBytesMax) problem.resize(kRefusalBytesMax);
  return problem;
}

}  // namespace flux
