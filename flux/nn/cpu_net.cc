// The native CPU engine behind Net: kernels in graph order, then in reverse, by a team.
//
// A block of rows goes through all nodes, forward and backward, as far as each node looks at one
// row at a time; so what it computes stays in its core's caches, and members meet only where a node
// needs more: at the sums over all rows that are the gradients of parameters, at rows of tables,
// and at nodes that look at the whole batch.
#include <algorithm>
#include <cstring>
#include <ctime>

#include "flux/base/cpu.h"
#include "flux/base/text.h"
#include "flux/nn/net.h"
#include "flux/nn/operator.h"
#include "flux/nn/plan.h"

namespace flux {
namespace {

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Adds the thread's time since construction to *seconds, if that is not null.
class Timed {
 public:
  explicit Timed(double* seconds) : seconds_(seconds) {
    if (seconds_ != nullptr) start_ = thread_seconds();
  }
  ~Timed() {
    if (seconds_ != nullptr) *seconds_ += thread_seconds() - start_;
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double* seconds_;
  double start_ = 0;
};

// Rows that a member takes at a time: few enough that members end together, many enough that the
// weights, which each block streams, are worth it.
uint32_t rows_per_block(uint32_t batch, uint32_t members) {
  constexpr uint32_t kRowsMax = 256, kBlocksEach = 4;
  if (members == 1) return (batch + kSumRows - 1) / kSumRows * kSumRows;
  const uint32_t parts = row_parts(batch);
  const uint32_t each = std::max(1U, parts / (members * kBlocksEach));
  return std::min(each * kSumRows, kRowsMax);
}

// What one node does with the rows of a block, or with the whole batch when its turn comes.
enum class Work : uint8_t {
  kForward,
  kBackward,
  kLookForward,
  kLookBackward,
  kNarrowForward,
  kNarrowBackward
};
struct Item {
  size_t node;
  Work work;
};
// Between two stages all members have done all of the first.
struct Stage {
  bool by_rows = true;      // each block of rows goes through all items
  std::vector<Item> items;  // else there is one, which is cut into parts
};

class CpuNet : public Net {
 public:
  CpuNet(std::shared_ptr<const Graph> graph, const NetOptions& options)
      : graph_(std::move(graph)),
        options_(options),
        own_team_(1),
        team_(options.team == nullptr ? &own_team_ : options.team),
        plan_(*graph_, options.precision, options.batch_max, memory_),
        loss_stride_(row_parts(options.batch_max)),
        loss_sums_(graph_->heads().size() * loss_stride_),
        readers_(graph_->tables().size()) {}

  Status make_kernels() {
    kernels_.resize(team_->members());
    for (auto& kernels : kernels_) kernels.resize(graph_->nodes().size());
    for (size_t i = 0; i < graph_->nodes().size(); ++i) {
      const Node& node = graph_->nodes()[i];
      const size_t mark = memory_.mark();
      for (uint32_t m = 0; m < (node.def->whole_batch ? 1 : team_->members()); ++m) {
        memory_.replay(mark);
        KernelArgs args = plan_.args(i);
        args.members = team_->members();
        args.first = m == 0 ? nullptr : kernels_[0][i].get();
        FLUX_ASSIGN_OR_RETURN(auto kernel, node.def->make_kernel(args));
        kernels_[m][i] = std::move(kernel);
      }
      if (node.table >= 0) readers_[static_cast<size_t>(node.table)].push_back(i);
    }
    times_.resize(team_->members());
    for (auto& times : times_)
      for (const Node& node : graph_->nodes()) times.push_back({node.name, 0, 0, 0});
    plan_stages();
    return Status::ok();
  }

  const Graph& graph() const override { return *graph_; }
  std::vector<NodeTime> profile() const override {
    std::vector<NodeTime> sum = times_[0];
    for (size_t m = 1; m < times_.size(); ++m)
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i].set_s += times_[m][i].set_s;
        sum[i].forward_s += times_[m][i].forward_s;
        sum[i].backward_s += times_[m][i].backward_s;
      }
    return sum;
  }

  void set_parameters(const float* flat) override {
    parts_.clear();
    for (size_t i = 0; i < graph_->nodes().size(); ++i) {
      for (auto& kernels : kernels_)
        if (kernels[i]) kernels[i]->set_parameters(flat);
      for (uint32_t part = 0; part < kernels_[0][i]->pack_parts(); ++part)
        parts_.push_back({i, part});
    }
    team_->run(static_cast<uint32_t>(parts_.size()), [&](uint32_t block, uint32_t member) {
      const auto [node, part] = parts_[block];
      const Timed timed(seconds(member, node, &NodeTime::set_s));
      kernels_[0][node]->pack(part);
    });
  }

  double train(const NetInput& input, NetGradients* gradients, float* predictions) override {
    check(input);
    FLUX_CHECK(input.labels != nullptr || input.batch == 0 || graph_->inputs().labels.empty(),
               "train() needs labels");
    if (input.batch == 0) {
      clear(input, gradients);
      return 0;
    }
    Step step = step_of(input, predictions);
    step.gradients = gradients;
    if (only_counts_) gradients->parameters[0] = 0;
    for (const Stage& stage : training_) run_stage(stage, step);
    finish_gradients(step);
    return weighted_loss();
  }

  double predict(const NetInput& input, float* predictions) override {
    check(input);
    const Step step = step_of(input, predictions);
    for (const Stage& stage : predicting_)
      if (input.batch > 0) run_stage(stage, step);
    return weighted_loss();
  }

 private:
  struct Part {
    size_t node;  // or the table, from the number of nodes on
    uint32_t part;
  };

  void check(const NetInput& input) {
    std::fill(loss_sums_.begin(), loss_sums_.end(), 0.0);
    FLUX_CHECK(input.batch <= options_.batch_max, "batch of {} examples, compiled for {}",
               input.batch, options_.batch_max);
    FLUX_CHECK(input.tables.size() == graph_->tables().size(), "{} tables given, {} in the graph",
               input.tables.size(), graph_->tables().size());
  }
  Step step_of(const NetInput& input, float* predictions) {
    Step step;
    step.input = &input;
    step.batch = step.end = input.batch;
    step.predictions = predictions;
    step.loss_sums = loss_sums_.data();
    step.loss_stride = loss_stride_;
    return step;
  }
  uint32_t dim_of(size_t table) const {
    return graph_->inputs().tables.at(graph_->tables()[table]);
  }
  void clear(const NetInput& input, NetGradients* gradients) const {
    std::memset(gradients->parameters, 0, graph_->parameter_count() * sizeof(float));
    for (size_t t = 0; t < input.tables.size(); ++t)
      std::memset(gradients->tables[t], 0, input.tables[t].row_count * dim_of(t) * sizeof(float));
  }
  double weighted_loss() {
    double sum = 0;
    for (size_t h = 0; h < graph_->heads().size(); ++h) {
      double* parts = loss_sums_.data() + h * loss_stride_;
      add_parts(parts, loss_stride_, 1, 1);
      sum += static_cast<double>(graph_->heads()[h].weight) * parts[0];
    }
    return sum;
  }
  double* seconds(uint32_t member, size_t node, double NodeTime::*of) {
    return options_.profile ? &(times_[member][node].*of) : nullptr;
  }

  // Rows go through as many nodes as they can without waiting for others.
  static void add_rows_item(std::vector<Stage>* stages, Item item) {
    if (stages->empty() || !stages->back().by_rows) stages->push_back({});
    stages->back().items.push_back(item);
  }
  void add_stages(size_t node, bool backward, std::vector<Stage>* stages) const {
    const Item item{node, backward ? Work::kBackward : Work::kForward};
    if (graph_->nodes()[node].def->whole_batch) {
      stages->push_back({false, {item}});
      return;
    }
    if (kernels_[0][node]->looks(backward)) {
      add_rows_item(stages, {node, backward ? Work::kLookBackward : Work::kLookForward});
      stages->push_back({false, {{node, backward ? Work::kNarrowBackward : Work::kNarrowForward}}});
    }
    add_rows_item(stages, item);
  }
  void plan_stages() {
    for (size_t i = 0; i < graph_->nodes().size(); ++i) add_stages(i, false, &predicting_);
    training_ = predicting_;
    for (size_t i = graph_->nodes().size(); i-- > 0;)
      if (graph_->nodes()[i].trainable) add_stages(i, true, &training_);
  }

  void run_rows(const Item& item, Step& step, uint32_t member) {
    const bool back = item.work == Work::kBackward || item.work == Work::kLookBackward;
    Kernel& kernel = *kernels_[graph_->nodes()[item.node].def->whole_batch ? 0 : member][item.node];
    const Timed timed(
        seconds(member, item.node, back ? &NodeTime::backward_s : &NodeTime::forward_s));
    if (item.work == Work::kForward) kernel.forward(step);
    if (item.work == Work::kBackward) kernel.backward(step);
    // Alone, it adds up what it has just written before it leaves the caches.
    if (item.work == Work::kBackward && team_->members() == 1) sum_node(item.node, step);
    if (item.work == Work::kLookForward) kernel.look_forward(step);
    if (item.work == Work::kLookBackward) kernel.look_backward(step);
  }
  void run_stage(const Stage& stage, const Step& whole) {
    if (stage.by_rows) {
      const uint32_t rows = rows_per_block(whole.batch, team_->members());
      const uint32_t blocks = (whole.batch + rows - 1) / rows;
      team_->run(blocks, [&](uint32_t block, uint32_t member) {
        Step step = whole;
        step.first = block * rows;
        step.end = std::min(whole.batch, step.first + rows);
        for (const Item& item : stage.items) run_rows(item, step, member);
      });
      return;
    }
    const Item& item = stage.items.front();
    Step step = whole;
    if (item.work == Work::kForward || item.work == Work::kBackward) return run_rows(item, step, 0);
    const bool back = item.work == Work::kNarrowBackward;
    Kernel& kernel = *kernels_[0][item.node];
    team_->run(kernel.begin_narrow(back, whole.batch), [&](uint32_t part, uint32_t member) {
      const Timed timed(
          seconds(member, item.node, back ? &NodeTime::backward_s : &NodeTime::forward_s));
      kernel.narrow(back, part);
    });
  }

  void sum_node(size_t node, Step& step) {
    for (uint32_t part = 0; part < kernels_[0][node]->sum_parts(step.batch); ++part)
      kernels_[0][node]->sum(step, part);
  }

  // Gradients of parameters, and of the rows of tables.
  void finish_gradients(const Step& whole) {
    parts_.clear();
    const size_t nodes = graph_->nodes().size();
    for (size_t i = team_->members() > 1 ? nodes : 0; i-- > 0;)
      for (uint32_t part = 0, n = kernels_[0][i]->sum_parts(whole.batch); part < n; ++part)
        parts_.push_back({i, part});
    for (size_t t = 0; t < readers_.size(); ++t)
      for (uint32_t part = 0, n = table_parts(t, whole); part < n; ++part)
        parts_.push_back({nodes + t, part});
    team_->run(static_cast<uint32_t>(parts_.size()), [&](uint32_t block, uint32_t member) {
      const auto [node, part] = parts_[block];
      Step step = whole;
      if (node >= nodes) return add_table_part(node - nodes, step, part, member);
      const Timed timed(seconds(member, node, &NodeTime::backward_s));
      kernels_[0][node]->sum(step, part);
    });
  }
  // A reader that needs the whole batch writes the gradients of all rows at once.
  uint32_t table_parts(size_t table, const Step& step) const {
    constexpr size_t kRowsMin = 64;
    for (const size_t node : readers_[table])
      if (graph_->nodes()[node].def->whole_batch) return 1;
    const TableInput& in = step.input->tables[table];
    const size_t rows = in.row_count - in.first_row;
    const uint32_t members = team_->members();
    return members == 1
               ? 1
               : static_cast<uint32_t>(std::clamp<size_t>(rows / kRowsMin, 1, size_t{members} * 4));
  }
  void add_table_part(size_t table, Step& step, uint32_t part, uint32_t member) {
    const TableInput& in = step.input->tables[table];
    const size_t rows = in.row_count - in.first_row, parts = table_parts(table, step);
    const auto first = static_cast<uint32_t>(in.first_row + rows * part / parts);
    const auto end = static_cast<uint32_t>(in.first_row + rows * (part + 1) / parts);
    const size_t dim = dim_of(table);
    std::memset(step.gradients->tables[table] + first * dim, 0,
                (end - first) * dim * sizeof(float));
    for (size_t r = readers_[table].size(); r-- > 0;) {
      const size_t node = readers_[table][r];
      const Timed timed(seconds(member, node, &NodeTime::backward_s));
      kernels_[kernels_[member][node] ? member : 0][node]->add_rows(step, first, end);
    }
  }

  std::shared_ptr<const Graph> graph_;
  NetOptions options_;
  Team own_team_;
  Team* team_;
  NetMemory memory_;
  Plan plan_;
  // The only parameter belongs to no node; see Graph::parameters().
  const bool only_counts_ = graph_->parameter_count() == 1 &&
                            std::none_of(graph_->nodes().begin(), graph_->nodes().end(),
                                         [](const Node& node) { return !node.parameters.empty(); });
  uint32_t loss_stride_;
  std::vector<double> loss_sums_;                              // see Step
  std::vector<std::vector<std::unique_ptr<Kernel>>> kernels_;  // [member][node]
  std::vector<std::vector<size_t>> readers_;                   // nodes that read each table
  std::vector<Stage> predicting_, training_;
  std::vector<Part> parts_;                   // of the run under way
  std::vector<std::vector<NodeTime>> times_;  // [member][node]
};

}  // namespace

Result<Precision> choose_precision(const std::string& wish) {
  const std::vector<std::string> known = {"auto", "fp32", "bf16"};
  if (wish == "auto") return cpu_has_avx512_bf16() ? Precision::kBf16 : Precision::kFp32;
  if (wish == "fp32") return Precision::kFp32;
  if (wish == "bf16") {
    if (cpu_has_avx512_bf16()) return Precision::kBf16;
    return invalid(
        "precision bf16: this CPU has no AVX512-BF16, or FLUX_ISA hides it; use fp32, or auto to "
        "take what it has");
  }
  return invalid("precision '{}' is unknown{}; allowed: {}", wish, did_you_mean(wish, known),
                 join(known, ", "));
}

const char* precision_name(Precision precision) {
  return precision == Precision::kBf16 ? "bf16" : "fp32";
}

Result<std::unique_ptr<Net>> Net::compile(std::shared_ptr<const Graph> graph,
                                          const NetOptions& options) {
  if (options.batch_max == 0) return invalid("batch_max must be at least 1");
  if (options.precision == Precision::kBf16) {
    const auto precision = choose_precision("bf16");
    if (!precision.is_ok()) return precision.status();
  }
  auto net = std::make_unique<CpuNet>(std::move(graph), options);
  FLUX_RETURN_IF_ERROR(net->make_kernels());
  return std::unique_ptr<Net>(std::move(net));
}

}  // namespace flux
