#include "flux/data/criteo_gen.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "flux/base/hash.h"
#include "flux/base/random.h"
#include "flux/data/criteo_truth.h"
#include "flux/data/piecewise_file.h"

namespace flux {
namespace {

constexpr uint64_t kChunk = 10'000;           // examples drawn from one seed; part of the format
constexpr uint64_t kExactAucMax = 5'000'000;  // examples whose logits are kept and sorted
constexpr uint32_t kThreadsMax = 256;
constexpr uint32_t kDense = CriteoTruth::kDense;
constexpr uint32_t kSlots = CriteoTruth::kSlots;
// Longest line: the exponential of a 53-bit uniform is below 37, printed in 7 characters.
constexpr size_t kLineMax = 1 + kDense * 8 + kSlots * 9 + 1;

// Logits by class, and from them the probability that a positive ranks above a negative.
class LogitRanks {
 public:
  explicit LogitRanks(bool exact) : exact_(exact) {
    if (!exact_)
      for (auto& counts : histogram_) counts.resize(kBuckets);
  }
  void add(double logit, bool label) {
    if (exact_) {
      logits_[label].push_back(logit);
    } else {
      const double at = (logit + kRange) * (kBuckets / (2 * kRange));
      ++histogram_[label][static_cast<size_t>(std::clamp(at, 0.0, kBuckets - 1.0))];
    }
  }
  void merge(const LogitRanks& other) {
    for (int label = 0; label < 2; ++label) {
      const auto& from = other.logits_[label];
      logits_[label].insert(logits_[label].end(), from.begin(), from.end());
      for (size_t i = 0; i < histogram_[label].size(); ++i)
        histogram_[label][i] += other.histogram_[label][i];
    }
  }
  double auc() { return exact_ ? sorted_auc() : histogram_auc(); }

 private:
  static constexpr uint32_t kBuckets = 1U << 18;
  static constexpr double kRange = 16;  // logits beyond are counted at the ends

  static double share(double won, double pairs) { return pairs == 0 ? 0.5 : won / pairs; }
  double sorted_auc() {
    auto& [negative, positive] = logits_;
    std::sort(negative.begin(), negative.end());
    std::sort(positive.begin(), positive.end());
    uint64_t won_twice = 0;  // a tie is half a win
    size_t below = 0, not_above = 0;
    for (const double logit : positive) {
      while (below < negative.size() && negative[below] < logit) ++below;
      while (not_above < negative.size() && negative[not_above] <= logit) ++not_above;
      won_twice += below + not_above;
    }
    return share(0.5 * static_cast<double>(won_twice),
                 static_cast<double>(positive.size()) * static_cast<double>(negative.size()));
  }
  double histogram_auc() const {
    double won = 0, negatives = 0, positives = 0;
    for (uint32_t i = 0; i < kBuckets; ++i) {
      const auto below = static_cast<double>(histogram_[0][i]);
      const auto here = static_cast<double>(histogram_[1][i]);
      won += here * (negatives + 0.5 * below);
      negatives += below;
      positives += here;
    }
    return share(won, positives * negatives);
  }

  bool exact_;
  std::array<std::vector<double>, 2> logits_;
  std::array<std::vector<uint64_t>, 2> histogram_;
};

// Which ids of each slot occurred.
class SeenIds {
 public:
  SeenIds() {
    for (uint32_t s = 0; s < kSlots; ++s)
      slots_[s].resize((CriteoTruth::kCardinality[s] + 63) / 64);
  }
  void add(uint32_t slot, uint32_t id) { slots_[slot][id / 64] |= uint64_t{1} << (id % 64); }
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
      : ranks(options.examples <= kExactAucMax), options_(options), truth_(truth) {
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
    std::array<uint32_t, kSlots> ids;
    for (uint32_t d = 0; d < kDense; ++d) {
      // The truth sees the value as it is printed, so that a reader can recompute the logit.
      printed[d] = static_cast<uint32_t>(random->exponential() * 10'000.0 + 0.5);
      dense[d] = printed[d] / 10'000.0;
    }
    static_assert(kSlots % 2 == 0);
    for (uint32_t s = 0; s < kSlots; s += 2) {
      const uint64_t draw = random->next();
      ids[s] = truth_.sample(s, static_cast<uint32_t>(draw >> 32));
      ids[s + 1] = truth_.sample(s + 1, static_cast<uint32_t>(draw));
    }
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
      out = put_hex(CriteoTruth::token(s, ids[s]), out);
    }
    *out++ = '\n';
    return out;
  }

  const CriteoGenOptions& options_;
  const CriteoTruth& truth_;
  std::string text_;
};

// Hands out chunks to threads and lets them write in order: each makes a chunk, waits for its turn
// and appends it, so there are never more chunks in memory than threads.
class OrderedRun {
 public:
  OrderedRun(const CriteoGenOptions& options, PiecewiseFile* file,
             const std::function<void(uint64_t)>& progress)
      : options_(options),
        chunks_((options.examples - 1) / kChunk + 1),
        file_(file),
        progress_(progress) {}
  uint64_t chunks() const { return chunks_; }

  void work(ChunkMaker* maker) {
    PiecePacker packer(file_->gzip());
    for (uint64_t chunk; (chunk = next_.fetch_add(1)) < chunks_;) {
      const auto piece = packer.pack(maker->make(chunk));
      std::unique_lock lock(mutex_);
      turned_.wait(lock, [&] { return turn_ == chunk || !status_.is_ok(); });
      if (!status_.is_ok()) return;
      lock.unlock();  // the turn itself keeps the others away
      Status status = piece.is_ok() ? file_->append(piece.value()) : piece.status();
      if (status.is_ok() && progress_)
        progress_(chunk * kChunk + ChunkMaker::size_of(options_, chunk));
      lock.lock();
      status_ = std::move(status);
      ++turn_;
      turned_.notify_all();
    }
  }
  const Status& status() const { return status_; }  // after all threads ended

 private:
  const CriteoGenOptions& options_;
  const uint64_t chunks_;
  PiecewiseFile* const file_;
  const std::function<void(uint64_t)>& progress_;
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable turned_;
  uint64_t turn_ = 0;  // the chunk to be written now
  Status status_;
};

}  // namespace

Result<CriteoGenReport> generate_criteo(const CriteoGenOptions& options, const std::string& path,
                                        unsigned threads,
                                        const std::function<void(uint64_t)>& progress) {
  if (options.examples == 0)
    return invalid("{}: 0 examples were asked for; ask for at least 1", path);
  FLUX_ASSIGN_OR_RETURN(const auto file, PiecewiseFile::create(path));
  const CriteoTruth truth(options.truth_seed);
  OrderedRun run(options, file.get(), progress);
  const uint64_t makers_wanted =
      std::min<uint64_t>({std::max(threads, 1U), run.chunks(), uint64_t{kThreadsMax}});
  std::vector<std::unique_ptr<ChunkMaker>> makers;
  for (uint64_t i = 0; i < makers_wanted; ++i)
    makers.push_back(std::make_unique<ChunkMaker>(options, truth));
  std::vector<std::thread> others;
  for (size_t i = 1; i < makers.size(); ++i)
    others.emplace_back([&run, maker = makers[i].get()] { run.work(maker); });
  run.work(makers[0].get());
  for (auto& thread : others) thread.join();
  FLUX_RETURN_IF_ERROR(run.status());
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
