// What a number costs on its way to the wire: fp16 and bf16 conversion both ways, and the checksum
// of a frame. usage: wire_bench
// Sizes are those of one batch of CTR-DNN: a pull's reply (440 KB of floats), a request's keys
// (80 KB), a small message. Times are CPU time of one thread, best of several rounds, in cache.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "flux/base/half.h"
#include "flux/base/hash.h"

namespace flux {
namespace {

constexpr int kRounds = 7;
constexpr double kRoundBytes = 256e6;  // of floats or of checksummed bytes
constexpr size_t kFloats = 110'000;

double cpu_seconds() {
  timespec t = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Seconds of one call of `work`, which handles `bytes`.
template <typename Work>
double best_of(size_t bytes, Work&& work) {
  const auto calls = static_cast<int>(std::max(1.0, kRoundBytes / static_cast<double>(bytes)));
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = cpu_seconds();
    for (int i = 0; i < calls; ++i) work();
    best = std::min(best, (cpu_seconds() - begin) / calls);
  }
  return best;
}

// Gradients of both signs over many magnitudes, always the same ones.
std::vector<float> make_floats() {
  std::vector<float> values(kFloats);
  for (size_t i = 0; i < values.size(); ++i) {
    const float scale = hash_uniform(i, 1, 0) < 0.5F ? 1.0F : 1e-3F;
    values[i] = (hash_uniform(i, 1, 1) - 0.5F) * scale;
  }
  return values;
}

// Keeps the compiler from leaving out the work whose result nobody reads.
void keep(const void* data) {
  asm volatile("" : : "g"(data) : "memory");
}

struct Line {
  std::string name;
  size_t bytes = 0;
  double seconds = 0;
  double gb_per_s() const { return static_cast<double>(bytes) / seconds / 1e9; }
};

template <typename Narrow, typename Widen>
void add_conversion(const char* form, Narrow&& narrow, Widen&& widen, std::vector<Line>* lines) {
  const std::vector<float> from = make_floats();
  std::vector<uint16_t> half(from.size());
  std::vector<float> back(from.size());
  const size_t bytes = from.size() * sizeof(float);
  const double to = best_of(bytes, [&] {
    narrow(from.data(), half.data(), from.size());
    keep(half.data());
  });
  const double fro = best_of(bytes, [&] {
    widen(half.data(), back.data(), half.size());
    keep(back.data());
  });
  lines->push_back({fmt::format("floats to {}", form), bytes, to});
  lines->push_back({fmt::format("{} to floats", form), bytes, fro});
}

void add_checksums(std::vector<Line>* lines) {
  for (const size_t bytes : {size_t{64}, size_t{80'000}, size_t{440'000}}) {
    const std::vector<uint8_t> data(bytes, 0x5a);
    uint64_t sum = 0;
    const double seconds = best_of(bytes, [&] {
      sum += hash_bytes(data.data(), data.size(), sum);
      keep(&sum);
    });
    lines->push_back({"XXH3 checksum", bytes, seconds});
  }
}

int run() {
  std::vector<Line> lines;
  add_conversion("fp16", floats_to_fp16, fp16_to_floats, &lines);
  add_conversion("bf16", floats_to_bf16, bf16_to_floats, &lines);
  add_checksums(&lines);
  fmt::print("{:<18} {:>10} {:>10} {:>8}\n", "on one core", "bytes", "us", "GB/s");
  for (const Line& line : lines)
    fmt::print("{:<18} {:>10} {:>10.3f} {:>8.1f}\n", line.name, line.bytes, line.seconds * 1e6,
               line.gb_per_s());
  fmt::print("GB/s: of floats, wide side; of bytes checksummed\n");
  for (const Line& line : lines)
    fmt::print(
        "{{\"bench\":\"wire\",\"what\":\"{}\",\"bytes\":{},\"us\":{:.4f},\"gb_per_s\":{:.2f}}}\n",
        line.name, line.bytes, line.seconds * 1e6, line.gb_per_s());
  return 0;
}

}  // namespace
}  // namespace flux

int main() {
  return flux::run();
}
