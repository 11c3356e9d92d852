// The native CPU engine behind Net: kernels in graph order, then in reverse.
#include <algorithm>
#include <cstring>
#include <ctime>

#include <omp.h>

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

// oneDNN runs on OpenMP, whose thread count belongs to the calling thread.
void stay_single_threaded() {
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
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

class CpuNet : public Net {
 public:
  CpuNet(std::shared_ptr<const Graph> graph, const NetOptions& options)
      : graph_(std::move(graph)),
        options_(options),
        plan_(*graph_, options.precision, options.batch_max, memory_),
        loss_sums_(graph_->heads().size()) {}

  Status make_kernels() {
    for (size_t i = 0; i < graph_->nodes().size(); ++i) {
      const Node& node = graph_->nodes()[i];
      FLUX_ASSIGN_OR_RETURN(auto kernel, node.def->make_kernel(plan_.args(i)));
      kernels_.push_back(std::move(kernel));
      times_.push_back({node.name, 0, 0, 0});
    }
    return Status::ok();
  }

  const Graph& graph() const override { return *graph_; }
  std::vector<NodeTime> profile() const override { return times_; }

  void set_parameters(const float* flat) override {
    stay_single_threaded();
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const Timed timed(options_.profile ? &times_[i].set_s : nullptr);
      kernels_[i]->set_parameters(flat);
    }
  }

  double train(const NetInput& input, NetGradients* gradients, float* predictions) override {
    check(input);
    FLUX_CHECK(input.labels != nullptr || input.batch == 0 || graph_->inputs().labels.empty(),
               "train() needs labels");
    if (input.batch == 0) {
      clear(input, gradients);
      return 0;
    }
    Step step{&input, input.batch, gradients, predictions, loss_sums_.data()};
    if (only_counts_) gradients->parameters[0] = 0;
    forward(step);
    for (size_t i = kernels_.size(); i-- > 0;) {
      if (!graph_->nodes()[i].trainable) continue;
      const Timed timed(options_.profile ? &times_[i].backward_s : nullptr);
      kernels_[i]->backward(step);
    }
    return weighted_loss();
  }

  double predict(const NetInput& input, float* predictions) override {
    check(input);
    Step step{&input, input.batch, nullptr, predictions, loss_sums_.data()};
    if (input.batch > 0) forward(step);
    return weighted_loss();
  }

 private:
  void check(const NetInput& input) {
    stay_single_threaded();
    std::fill(loss_sums_.begin(), loss_sums_.end(), 0.0);
    FLUX_CHECK(input.batch <= options_.batch_max, "batch of {} examples, compiled for {}",
               input.batch, options_.batch_max);
    FLUX_CHECK(input.tables.size() == graph_->tables().size(), "{} tables given, {} in the graph",
               input.tables.size(), graph_->tables().size());
  }
  void clear(const NetInput& input, NetGradients* gradients) const {
    std::memset(gradients->parameters, 0, graph_->parameter_count() * sizeof(float));
    for (size_t t = 0; t < input.tables.size(); ++t) {
      const uint32_t dim = graph_->inputs().tables.at(graph_->tables()[t]);
      std::memset(gradients->tables[t], 0, input.tables[t].row_count * dim * sizeof(float));
    }
  }
  double weighted_loss() const {
    double sum = 0;
    for (size_t h = 0; h < loss_sums_.size(); ++h)
      sum += static_cast<double>(graph_->heads()[h].weight) * loss_sums_[h];
    return sum;
  }
  void forward(Step& step) {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const Timed timed(options_.profile ? &times_[i].forward_s : nullptr);
      kernels_[i]->forward(step);
    }
  }

  std::shared_ptr<const Graph> graph_;
  NetOptions options_;
  NetMemory memory_;
  Plan plan_;
  // The only parameter belongs to no node; see Graph::parameters().
  const bool only_counts_ = graph_->parameter_count() == 1 &&
                            std::none_of(graph_->nodes().begin(), graph_->nodes().end(),
                                         [](const Node& node) { return !node.parameters.empty(); });
  std::vector<double> loss_sums_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<NodeTime> times_;
};

}  // namespace

Result<Precision> choose_precision(const std::string& wish) {
  const std::vector<std::string> known = {"auto", "fp32", "bf16"};
  if (wish == "auto") return cpu_has_avx512_bf16() ? Precision::kBf16 : Precision::kFp32;
  if (wish == "fp32") return Precision::kFp32;
  if (wish == "bf16") {
    if (cpu_has_avx512_bf16()) return Precision::kBf16;
    return invalid(
        "precision bf16: this CPU has no AVX512-BF16; use fp32, or auto to take what it has");
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
  stay_single_threaded();
  auto net = std::make_unique<CpuNet>(std::move(graph), options);
  FLUX_RETURN_IF_ERROR(net->make_kernels());
  return std::unique_ptr<Net>(std::move(net));
}

}  // namespace flux
