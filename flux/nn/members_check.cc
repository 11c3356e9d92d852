#include "flux/nn/members_check.h"

#include <cstring>
#include <vector>

#include "flux/base/random.h"
#include "flux/base/team.h"
#include "flux/base/text.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

// Everything that some steps of training leave, step by step.
struct Trace {
  std::vector<double> losses;
  std::vector<float> predictions, gradients;
};

// The way back of TableInput.
struct Occurrences {
  explicit Occurrences(const SampleBatch& sample) : begin(sample.row_count + 1) {
    for (const uint32_t row : sample.index) ++begin[row + 1];
    for (uint32_t r = 0; r < sample.row_count; ++r) begin[r + 1] += begin[r];
    std::vector<uint32_t> at(begin.begin(), begin.end() - 1);
    places.resize(sample.index.size());
    for (uint32_t i = 0; i < sample.index.size(); ++i) places[at[sample.index[i]]++] = i;
  }
  std::vector<uint32_t> begin, places;
};

void append(const std::vector<float>& from, std::vector<float>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

void train_step(const Graph& graph, const MembersCheck& check, uint32_t step, Net* net,
                bool way_back, std::vector<float>* flat, Trace* trace) {
  const uint32_t less = step * (check.batch / 3 + 1);
  const uint32_t batch = check.batch > less ? check.batch - less : 1;
  SampleBatch sample = make_sample(graph, batch, check.row_count, check.seed + step);
  const Occurrences occurrences(sample);
  NetInput input = sample.view();
  for (TableInput& table : input.tables) {
    if (!way_back) break;
    table.row_begin = occurrences.begin.data();
    table.occurrences = occurrences.places.data();
  }
  std::vector<float> gradient(flat->size(), 7.0F);
  std::vector<float> predictions(graph.heads().size() * batch, 7.0F);
  std::vector<std::vector<float>> rows;
  NetGradients gradients{gradient.data(), {}};
  for (const auto& table : sample.rows) {
    rows.emplace_back(table.size(), 7.0F);
    gradients.tables.push_back(rows.back().data());
  }
  net->set_parameters(flat->data());
  trace->losses.push_back(net->predict(input, predictions.data()));
  append(predictions, &trace->predictions);
  trace->losses.push_back(net->train(input, &gradients, predictions.data()));
  append(predictions, &trace->predictions);
  append(gradient, &trace->gradients);
  for (const auto& table : rows) append(table, &trace->gradients);
  for (size_t i = 0; i < flat->size(); ++i) (*flat)[i] -= 0.1F * gradient[i];
}

Result<Trace> train(const std::shared_ptr<const Graph>& graph, const MembersCheck& check,
                    uint32_t members) {
  Team team(members);
  NetOptions options;
  options.precision = check.precision;
  options.batch_max = check.batch;
  options.team = &team;
  FLUX_ASSIGN_OR_RETURN(const auto net, Net::compile(graph, options));
  std::vector<float> flat(graph->parameter_count());
  Random random(check.seed);
  for (float& value : flat) value = static_cast<float>(random.normal()) * 0.3F + check.first_bias;
  Trace trace;
  for (uint32_t step = 0; step < check.steps; ++step)
    train_step(*graph, check, step, net.get(), members % 2 == 0, &flat, &trace);
  return trace;
}

template <typename T>
std::string difference(const char* what, const std::vector<T>& one, const std::vector<T>& many,
                       uint32_t members) {
  for (size_t i = 0; i < one.size(); ++i)
    if (std::memcmp(&one[i], &many[i], sizeof(T)) != 0)
      return fmt::format("{} {} is {} with one thread and {} with {}", what, i, one[i], many[i],
                         members);
  return "";
}

}  // namespace

std::string check_members(const std::shared_ptr<const Graph>& graph, const MembersCheck& check) {
  const Result<Trace> one = train(graph, check, 1);
  if (!one.is_ok()) return one.status().message();
  for (const uint32_t members : {2U, 3U, 8U}) {
    const Result<Trace> many = train(graph, check, members);
    if (!many.is_ok()) return many.status().message();
    const Trace &a = one.value(), &b = many.value();
    std::string problem = difference("loss", a.losses, b.losses, members);
    if (problem.empty()) problem = difference("prediction", a.predictions, b.predictions, members);
    if (problem.empty()) problem = difference("gradient", a.gradients, b.gradients, members);
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace flux
