// How fast text becomes batches: scan, parse of plain text and of gzip, per core.
// usage: parse_bench [examples] [directory for the generated files]
// Times are CPU time of the calling thread, best of several rounds, data in the page cache.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "flux/data/criteo_gen.h"
#include "flux/data/criteo_line.h"
#include "flux/data/dataset.h"
#include "flux/data/reference_parser.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

constexpr int kRounds = 5;

double cpu_seconds() {
  timespec t = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <typename T>
T must(Result<T> result) {
  if (result.is_ok()) return std::move(result).value();
  std::fprintf(stderr, "parse_bench: %s\n", result.status().message().c_str());
  std::exit(1);
}

template <typename Work>
double best_of(Work&& work) {
  double best = 1e30;
  for (int i = 0; i < kRounds; ++i) {
    const double begin = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - begin);
  }
  return best;
}

struct Row {
  std::string name;
  double seconds = 0;
  uint64_t bytes = 0;  // of text
  uint64_t examples = 0;
  double mb_per_s() const { return static_cast<double>(bytes) / seconds / 1e6; }
  double ns_per_example() const { return seconds * 1e9 / static_cast<double>(examples); }
};

void read_all(const Dataset& data, Batch* batch) {
  const Geometry& g = data.geometry();
  for (uint32_t b = 0; b < g.blocks.size(); ++b) {
    const auto block = must(data.open_block(b, 0));
    for (uint32_t j = 0; j < g.batches_in(b); ++j)
      if (!block->read_batch(j, batch).is_ok()) std::exit(1);
  }
}

// The parser alone, on one line in the cache.
double line_seconds(bool fast, uint64_t rounds) {
  std::string line = "1";
  for (uint32_t i = 0; i < kCriteoDense; ++i) line += "\t1.2345";
  for (uint32_t s = 0; s < kCriteoSlots; ++s) line += "\t89abcdef";
  const size_t size = line.size();
  line.resize(size + kCriteoSlack);
  CriteoRecord record;
  return best_of([&] {
    for (uint64_t i = 0; i < rounds; ++i) {
      if (fast) {
        if (!parse_criteo_line(line.data(), size, &record)) std::exit(1);
      } else if (reference_parse_line({line.data(), size}, &record)) {
        std::exit(1);
      }
    }
  });
}

void print(const std::vector<Row>& rows) {
  fmt::print("{:<24}{:>10}{:>14}{:>14}\n", "on one core", "MB/s", "ns/example", "examples/s");
  std::string json;
  for (const Row& row : rows) {
    fmt::print("{:<24}{:>10.0f}{:>14.1f}{:>14.0f}\n", row.name, row.mb_per_s(),
               row.ns_per_example(), 1e9 / row.ns_per_example());
    json += fmt::format("{}\"{}\": {{\"mb_per_s\": {:.1f}, \"ns_per_example\": {:.2f}}}",
                        json.empty() ? "" : ", ", row.name, row.mb_per_s(), row.ns_per_example());
  }
  fmt::print("{{\"bench\": \"parse\", {}}}\n", json);
}

void run(uint64_t examples, const std::string& directory) {
  const std::string plain = directory + "/parse_bench.tsv";
  const std::string packed = directory + "/parse_bench.tsv.gz";
  const CriteoGenOptions gen{.examples = examples};
  std::vector<Row> rows;
  double begin = cpu_seconds();
  must(generate_criteo(gen, plain, 1, {}));
  const uint64_t bytes = must(ReadFile::open(plain)).size();
  rows.push_back({"generate", cpu_seconds() - begin, bytes, examples});
  must(generate_criteo(gen, packed, 2, {}));
  const auto add = [&](const char* name, double seconds) {
    rows.push_back({name, seconds, bytes, examples});
  };
  DataOptions options;
  const auto scan = [&](const std::string& path) {
    return must(Dataset::scan({&path, 1}, options, 1));
  };
  Batch batch;
  add("scan plain", best_of([&] { scan(plain); }));
  add("scan gzip", best_of([&] { scan(packed); }));
  const auto shuffled = must(Dataset::open(scan(plain), options));
  add("parse plain, shuffled", best_of([&] { read_all(*shuffled, &batch); }));
  const Geometry packed_cut = scan(packed);
  add("parse gzip, first epoch",
      best_of([&] { read_all(*must(Dataset::open(packed_cut, options)), &batch); }));
  options.shuffle = false;
  const auto ordered = must(Dataset::open(scan(plain), options));
  add("parse plain, in order", best_of([&] { read_all(*ordered, &batch); }));
  constexpr uint64_t kLines = 200000;
  constexpr uint64_t kLineBytes = 2 + kCriteoDense * 7 + kCriteoSlots * 9;
  rows.push_back({"line in cache", line_seconds(true, kLines), kLines * kLineBytes, kLines});
  rows.push_back({"reference parser", line_seconds(false, kLines), kLines * kLineBytes, kLines});
  print(rows);
  std::filesystem::remove(plain);
  std::filesystem::remove(packed);
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  const uint64_t examples = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 300000;
  const std::string directory =
      argc > 2 ? argv[2] : std::filesystem::temp_directory_path().string();
  flux::run(examples == 0 ? 300000 : examples, directory);
  return 0;
}
