// What one Net costs: thread CPU time per batch of the CTR-DNN, DeepFM and DCN-v2 (fp32, bf16) and
// of a logistic regression, split by node, beside the raw GEMM peak of oneDNN on random data in the
// same run (of our own kernels where the CPU has AMX, which that oneDNN cannot use).
// Usage: net_bench [batches] [threads]. FLUX_ISA caps both. The last line is JSON.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <numeric>
#include <thread>

#include <dnnl.hpp>
#include <omp.h>

#include "flux/base/buffer.h"
#include "flux/base/cpu.h"
#include "flux/base/finite.h"
#include "flux/base/random.h"
#include "flux/nn/gemm_kernels.h"
#include "flux/nn/net.h"
#include "flux/nn/operator.h"
#include "flux/nn/reference.h"

namespace flux {
namespace {

constexpr uint32_t kBatch = 1000;
constexpr uint32_t kRows = 10000;

double thread_ms() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + 1e-6 * static_cast<double>(t.tv_nsec);
}

constexpr int64_t kPeakM = 1000, kPeakN = 400, kPeakK = 400;

// Best of several rounds of a product, in GFLOP/s.
template <typename Run>
double best_gflops(const Run& run) {
  double best = 1e9;
  for (int round = 0; round < 12; ++round) {
    const double start = thread_ms();
    for (int i = 0; i < 20; ++i) run();
    best = std::min(best, (thread_ms() - start) / 20);
  }
  return 2e-6 * static_cast<double>(kPeakM * kPeakN * kPeakK) / best;
}

// In tile registers, nothing fused with it.
double amx_peak() {
  const auto random_values = [](int64_t rows, int64_t columns) {
    Random random(1);
    std::vector<float> out(static_cast<size_t>(rows * columns));
    for (float& one : out) one = static_cast<float>(random.normal());
    return out;
  };
  const GemmKernels& kernels = gemm_kernels_amx();
  Buffer<char> a(kPeakM * kPeakK * 2), b(kPeakK * kPeakN * 4), c(kPeakM * kPeakN * 4);
  const std::vector<float> left = random_values(kPeakM, kPeakK),
                           right = random_values(kPeakK, kPeakN);
  const Tensor rows{a.data(), kPeakK, kPeakK, DType::kBf16};
  for (uint32_t i = 0; i < kPeakM; ++i) write_row(rows, i, left.data() + i * kPeakK, false);
  kernels.pack_weight(right.data(), kPeakK, kPeakN, b.data(), 0, nullptr, 0, ~0U);
  Gemm g;
  g.m = kPeakM, g.n = kPeakN, g.k = kPeakK / 2;
  g.a = a.data(), g.a_stride = kPeakK / 2;
  g.b = b.data();
  g.c = c.data(), g.c_stride = kPeakN;
  return best_gflops([&] { kernels.gemm(g); });
}

double gemm_peak(DType type) {
  if (type == DType::kBf16 && cpu_has_amx_bf16()) return amx_peak();
  using dnnl::memory;
  omp_set_num_threads(1);
  const auto t = type == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
  constexpr int64_t m = kPeakM, n = kPeakN, k = kPeakK;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc a({m, k}, t, memory::format_tag::ab), b({k, n}, t, memory::format_tag::any),
      c({m, n}, t, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(a, b, c), engine);
  memory ma(a, engine), mb(pd.weights_desc(), engine), mc(c, engine);
  Random random(1);
  for (const memory* mem : {&ma, &mb}) {
    const size_t count = mem->get_desc().get_size() / dtype_size(type);
    const Tensor flat{mem->get_data_handle(), 1, 1, type};
    for (size_t i = 0; i < count; ++i) {
      const float x = static_cast<float>(random.normal());
      write_row(flat, i, &x, false);
    }
  }
  const dnnl::matmul product(pd);
  return best_gflops([&] {
    product.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
  });
}

struct Cost {
  double best_ms = 1e9, mean_ms = 0;
  double check_ms = 0;  // looking for what is not finite in the gradients, mean
  std::vector<NodeTime> nodes;
};

Cost measure(const std::shared_ptr<const Graph>& graph, Precision precision, int batches,
             bool profile) {
  auto net = Net::compile(graph, {precision, kBatch, profile}).value();
  const SampleBatch sample = make_sample(*graph, kBatch, kRows, 1);
  const std::vector<float> flat = graph->initial_parameters(1);
  std::vector<float> parameters(flat.size()), predictions(kBatch);
  std::vector<std::vector<float>> rows;
  NetGradients gradients{parameters.data(), {}};
  for (const auto& table : sample.rows) rows.emplace_back(table.size());
  for (auto& table : rows) gradients.tables.push_back(table.data());
  const NetInput input = sample.view();
  const auto step = [&] {
    net->set_parameters(flat.data());
    net->train(input, &gradients, predictions.data());
  };
  for (int i = 0; i < 5; ++i) step();
  Cost cost;
  cost.nodes = net->profile();
  for (NodeTime& node : cost.nodes) node.set_s = node.forward_s = node.backward_s = 1e9;
  for (int i = 0; i < batches; ++i) {
    const std::vector<NodeTime> before = net->profile();
    const double start = thread_ms();
    step();
    const double ms = thread_ms() - start;
    cost.best_ms = std::min(cost.best_ms, ms);
    cost.mean_ms += ms / batches;
    const double check = thread_ms();
    bool finite = first_not_finite(parameters.data(), parameters.size()) == parameters.size();
    for (const auto& table : rows)
      finite = finite && first_not_finite(table.data(), table.size()) == table.size();
    if (!finite) std::printf("a gradient is not finite\n");
    cost.check_ms += (thread_ms() - check) / batches;
    const std::vector<NodeTime> times = net->profile();
    for (size_t n = 0; n < before.size(); ++n) {
      const NodeTime& after = times[n];
      NodeTime& best = cost.nodes[n];
      best.set_s = std::min(best.set_s, after.set_s - before[n].set_s);
      best.forward_s = std::min(best.forward_s, after.forward_s - before[n].forward_s);
      best.backward_s = std::min(best.backward_s, after.backward_s - before[n].backward_s);
    }
  }
  return cost;
}

// Floating-point operations per example of all fc and cross layers, forward and backward.
double flops(const Graph& graph) {
  double sum = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op != "fc" && node.op != "cross") continue;
    sum += 6.0 * node.width * graph.nodes()[node.inputs[0]].width;
  }
  return sum;
}

double report(const char* name, const std::shared_ptr<const Graph>& graph, Precision precision,
              int batches, double peak) {
  const Cost cost = measure(graph, precision, batches, false);
  const Cost split = measure(graph, precision, batches, true);
  const double gflops = flops(*graph) * kBatch * 1e-6 / cost.best_ms;
  std::printf("%s %s: best %.3f ms, mean %.3f ms per batch of %u, %.0f examples/s", name,
              precision_name(precision), cost.best_ms, cost.mean_ms, kBatch,
              1e3 * kBatch / cost.best_ms);
  std::printf(", finite check %.3f ms = %.2f %%", cost.check_ms,
              100 * cost.check_ms / cost.best_ms);
  std::printf(peak > 0 ? ", %.1f GFLOP/s = %.1f %% of peak\n" : "\n", gflops, 100 * gflops / peak);
  for (const NodeTime& node : split.nodes)
    std::printf("  %-8s set %7.1f us  forward %8.1f us  backward %8.1f us\n", node.name.c_str(),
                node.set_s * 1e6, node.forward_s * 1e6, node.backward_s * 1e6);
  return cost.best_ms;
}

// Mean ms per batch when `threads` nets run side by side.
double side_by_side(const std::shared_ptr<const Graph>& graph, Precision precision, int batches,
                    int threads) {
  std::vector<std::thread> pool;
  std::vector<double> ms(static_cast<size_t>(threads));
  for (auto& slot : ms)
    pool.emplace_back([&] { slot = measure(graph, precision, batches, false).best_ms; });
  double worst = 0;
  for (size_t i = 0; i < pool.size(); ++i) {
    pool[i].join();
    worst = std::max(worst, ms[i]);
  }
  return worst;
}

// Every thread multiplies on its own; the sum of their best rates.
double gemm_peak_of(DType type, int threads) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> pool;
  for (double& rate : rates) pool.emplace_back([&rate, type] { rate = gemm_peak(type); });
  for (std::thread& thread : pool) thread.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

void print_gemm_line(const std::string& precision, int threads, double gflops) {
  std::printf("{\"bench\": \"gemm\", \"precision\": \"%s\", \"threads\": %d, \"gflops\": %.1f}\n",
              precision.c_str(), threads, gflops);
}

int run(int batches, int threads) {
  const auto dnn = ctr_dnn_graph();
  std::map<std::string, double> figures;
  std::vector<Precision> precisions = {Precision::kFp32};
  if (cpu_has_avx512_bf16()) precisions.push_back(Precision::kBf16);
  // No more than flux uses; and tiles kill that oneDNN where a virtual machine hides their CPUID.
  dnnl::set_max_cpu_isa(isa() == Isa::kAvx2     ? dnnl::cpu_isa::avx2
                        : isa() == Isa::kAvx512 ? dnnl::cpu_isa::avx512_core
                                                : dnnl::cpu_isa::avx512_core_bf16);
  for (const Precision precision : precisions) {
    const std::string name = precision_name(precision);
    const double peak = gemm_peak(precision == Precision::kFp32 ? DType::kF32 : DType::kBf16);
    std::printf("GEMM peak %s (random data, 1000x400x400): %.1f GFLOP/s\n", name.c_str(), peak);
    const double ms = report("ctr_dnn", dnn, precision, batches, peak);
    const double many = side_by_side(dnn, precision, batches, threads);
    std::printf("  %d nets on %d threads: %.3f ms per batch and thread\n", threads, threads, many);
    print_gemm_line(name, 1, peak);
    if (threads > 1)
      print_gemm_line(
          name, threads,
          gemm_peak_of(precision == Precision::kFp32 ? DType::kF32 : DType::kBf16, threads));
    figures["deepfm_ms_" + name] = report("deepfm", deepfm_graph(), precision, batches, peak);
    figures["dcn_v2_ms_" + name] = report("dcn_v2", dcn_v2_graph(), precision, batches, peak);
    figures["gemm_peak_gflops_" + name] = peak;
    figures["ctr_dnn_ms_" + name] = ms;
    figures["ctr_dnn_ms_" + name + "_threads" + std::to_string(threads)] = many;
    figures["share_of_peak_" + name] = flops(*dnn) * kBatch * 1e-6 / ms / peak;
  }
  figures["lr_ms"] = report("lr", logistic_regression_graph(), precisions.back(), batches * 10, 0);
  std::printf("{\"bench\": \"net\"");
  const char* comma = ", ";
  for (const auto& [key, value] : figures) {
    std::printf("%s\"%s\": %.4f", comma, key.c_str(), value);
    comma = ", ";
  }
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  const char* wish = std::getenv("FLUX_ISA");
  if (!flux::cap_isa(wish != nullptr ? wish : "").is_ok()) {
    std::fprintf(stderr, "FLUX_ISA=%s is unknown\n", wish);
    return 2;
  }
  const int batches = argc > 1 ? std::atoi(argv[1]) : 30;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  if (batches < 1 || threads < 1) {
    std::fprintf(stderr, "usage: net_bench [batches] [threads]\n");
    return 2;
  }
  return flux::run(batches, threads);
}
