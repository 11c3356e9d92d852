#include "flux/data/criteo_gen.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "flux/base/hash.h"
#include "flux/base/random.h"
#include "flux/data/logit_ranks.h"
#include "flux/data/ordered_chunks.h"
#include "flux/data/piecewise_file.h"

namespace flux {
namespace {

constexpr uint64_t kChunk = 10'000;  // examples drawn from one seed; part of the format
constexpr uint32_t kDense = CriteoTruth::kDense;
constexpr uint32_t kSlots = CriteoTruth::kSlots;
// Longest line: the exponential of a 53-bit uniform is below 37, printed in 7 characters.
constexpr size_t kLineMax = 1 + kDense * 8 + kSlots * 9 + 1;

// Which ids of each slot occurred. At one moment a place has two holders at most, of lives that
// follow each other.
class SeenIds {
 public:
  SeenIds() {
    for (uint32_t s = 0; s < kSlots; ++s)
      slots_[s].resize((2 * CriteoTruth::kCardinality[s] + 63) / 64);
  }
  void add(uint32_t slot, const CriteoTruth::Id& id) {
    const uint32_t bit = 2 * id.place + id.life % 2;
    slots_[slot][bit / 64] |= uint64_t{1} << (bit % 64);
  }
  void merge(const SeenIds& other) {
    for (uint32_t s = 0; s < kSlots; ++s)
      for (size_t i = 0; i < slots_[s].size(); ++i) slots_[s][i] |= other.slots_[s][i];
  }
  uint64_t count() const {
    uint64_t n = 0;
    for (const auto& words : slots_)
      for (const uint64_t word : words) n += static_cast<uint64_t>(std::popcount(word));
    return n;
  }

 private:
  std::array<std::vector<uint64_t>, kSlots> slots_;
};

// "12.3456" of 123456; the value is below 1,000,000.
char* put_decimal(uint32_t ten_thousandths, char* out) {
  const uint32_t whole = ten_thousandths / 10'000;
  uint32_t rest = ten_thousandths % 10'000;
  if (whole >= 10) *out++ = static_cast<char>('0' + whole / 10);
  *out++ = static_cast<char>('0' + whole % 10);
  *out++ = '.';
  for (int i = 3; i >= 0; --i, rest /= 10) out[i] = static_cast<char>('0' + rest % 10);
  return out + 4;
}

char* put_hex(uint32_t value, char* out) {
  for (int i = 7; i >= 0; --i, value >>= 4) out[i] = "0123456789abcdef"[value & 15];
  return out + 8;
}

// One thread's share of the work: draws chunks, keeps the statistics of all it drew.
class ChunkMaker {
 public:
  ChunkMaker(const CriteoGenOptions& options, const CriteoTruth& truth)
      : ranks(options.examples <= LogitRanks::kExactMax), options_(options), truth_(truth) {
    text_.resize(kChunk * kLineMax);
  }
  static uint64_t size_of(const CriteoGenOptions& options, uint64_t chunk) {
    return std::min(kChunk, options.examples - chunk * kChunk);
  }
  // The lines of a chunk; valid until the next call.
  std::string_view make(uint64_t chunk) {
    Random random(hash_pair(hash_pair(options_.seed, 0xc417e0), chunk));
    char* out = text_.data();
    for (uint64_t n = size_of(options_, chunk); n > 0; --n) out = make_line(&random, out);
    return {text_.data(), static_cast<size_t>(out - text_.data())};
  }

  LogitRanks ranks;
  SeenIds seen;
  uint64_t positives = 0;

 private:
  char* make_line(Random* random, char* out) {
    std::array<uint32_t, kDense> printed;
    std::array<double, kDense> dense;
    CriteoTruth::Ids ids;
    for (uint32_t d = 0; d < kDense; ++d) {
      // The truth sees the value as it is printed, so that a reader can recompute the logit.
      printed[d] = static_cast<uint32_t>(random->exponential() * 10'000.0 + 0.5);
      dense[d] = printed[d] / 10'000.0;
    }
    truth_.draw(random, &ids);
    const double logit = truth_.logit(dense, ids);
    const bool label = random->chance(1.0 / (1.0 + std::exp(-logit)));
    positives += label;
    ranks.add(logit, label);
    *out++ = label ? '1' : '0';
    for (const uint32_t value : printed) {
      *out++ = '\t';
      out = put_decimal(value, out);
    }
    for (uint32_t s = 0; s < kSlots; ++s) {
      seen.add(s, ids[s]);
      *out++ = '\t';
      out = put_hex(CriteoTruth::token(s, ids[s].place, ids[s].life), out);
    }
    *out++ = '\n';
    return out;
  }

  const CriteoGenOptions& options_;
  const CriteoTruth& truth_;
  std::string text_;
};

}  // namespace

Result<CriteoGenReport> generate_criteo(const CriteoGenOptions& options, const std::string& path,
                                        unsigned threads,
                                        const std::function<void(uint64_t)>& progress) {
  const CriteoTruth truth(options.truth_seed);
  return generate_criteo(truth, options, path, threads, progress);
}

Result<CriteoGenReport> generate_criteo(const CriteoTruth& truth, const CriteoGenOptions& options,
                                        const std::string& path, unsigned threads,
                                        const std::function<void(uint64_t)>& progress) {
  if (options.examples == 0)
    return invalid("{}: 0 examples were asked for; ask for at least 1", path);
  FLUX_ASSIGN_OR_RETURN(const auto file, PiecewiseFile::create(path));
  const uint64_t chunks = (options.examples - 1) / kChunk + 1;
  std::vector<std::unique_ptr<ChunkMaker>> makers;
  std::vector<MakeChunk> make;
  for (size_t i = 0; i < chunk_threads(chunks, threads); ++i) {
    makers.push_back(std::make_unique<ChunkMaker>(options, truth));
    make.push_back([maker = makers.back().get()](uint64_t chunk) { return maker->make(chunk); });
  }
  FLUX_RETURN_IF_ERROR(write_chunks(file.get(), chunks, make, [&](uint64_t chunk) {
    if (progress) progress(chunk * kChunk + ChunkMaker::size_of(options, chunk));
  }));
  FLUX_RETURN_IF_ERROR(file->commit());

  ChunkMaker& total = *makers[0];
  for (size_t i = 1; i < makers.size(); ++i) {
    total.ranks.merge(makers[i]->ranks);
    total.seen.merge(makers[i]->seen);
    total.positives += makers[i]->positives;
  }
  CriteoGenReport report;
  report.examples = options.examples;
  report.distinct_ids = total.seen.count();
  report.ctr = static_cast<double>(total.positives) / static_cast<double>(options.examples);
  report.oracle_auc = total.ranks.auc();
  return report;
}

}  // namespace flux
