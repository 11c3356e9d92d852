#include "flux/data/feasign_gen.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "flux/base/hash.h"
#include "flux/data/logit_ranks.h"
#include "flux/data/made_truth.h"
#include "flux/data/ordered_chunks.h"

namespace flux {
namespace {

constexpr uint64_t kChunk = 10'000;  // examples drawn from one seed; part of the format

// One thread's share of the work: draws chunks, keeps the statistics of all it drew.
class LineMaker {
 public:
  LineMaker(const FeasignGenOptions& options, const MadeTruth& truth)
      : options_(options), truth_(truth), positives_(truth.labels().size()) {
    for (size_t l = 0; l < positives_.size(); ++l)
      ranks_.emplace_back(options.examples <= LogitRanks::kExactMax);
  }
  static uint64_t size_of(const FeasignGenOptions& options, uint64_t chunk) {
    return std::min(kChunk, options.examples - chunk * kChunk);
  }
  std::string_view make(uint64_t chunk) {
    Random random(hash_pair(hash_pair(options_.seed, 0xfea519), chunk));
    text_.clear();
    for (uint64_t n = size_of(options_, chunk); n > 0; --n) add_line(&random);
    return text_;
  }
  void merge(const LineMaker& other) {
    for (size_t l = 0; l < ranks_.size(); ++l) {
      ranks_[l].merge(other.ranks_[l]);
      positives_[l] += other.positives_[l];
    }
  }
  FeasignGenReport report() {
    FeasignGenReport out;
    out.examples = options_.examples;
    const std::vector<std::string> names = truth_.labels();
    for (size_t l = 0; l < names.size(); ++l)
      out.labels.push_back(
          {names[l], static_cast<double>(positives_[l]) / static_cast<double>(options_.examples),
           ranks_[l].auc()});
    return out;
  }

 private:
  void add_line(Random* random) {
    example_.features.clear();
    truth_.draw(random, &example_);
    for (size_t l = 0; l < example_.logits.size(); ++l) {
      const double logit = example_.logits[l] + options_.moment.lift;
      const bool label = random->chance(1.0 / (1.0 + std::exp(-logit)));
      ranks_[l].add(logit, label);
      positives_[l] += label ? 1 : 0;
      if (l > 0) text_ += ',';
      text_ += label ? '1' : '0';
    }
    text_ += example_.features;
    text_ += '\n';
  }

  const FeasignGenOptions& options_;
  const MadeTruth& truth_;
  MadeExample example_;
  std::string text_;
  std::vector<LogitRanks> ranks_;
  std::vector<uint64_t> positives_;
};

}  // namespace

Result<FeasignGenReport> generate_feasign(const FeasignGenOptions& options, const std::string& path,
                                          unsigned threads,
                                          const std::function<void(uint64_t)>& progress) {
  if (options.examples == 0)
    return invalid("{}: 0 examples were asked for; ask for at least 1", path);
  FLUX_ASSIGN_OR_RETURN(const auto truth,
                        make_truth(options.kind, options.truth_seed, options.moment));
  FLUX_ASSIGN_OR_RETURN(const auto file, PiecewiseFile::create(path));
  const uint64_t chunks = (options.examples - 1) / kChunk + 1;
  std::vector<std::unique_ptr<LineMaker>> makers;
  std::vector<MakeChunk> make;
  for (size_t i = 0; i < chunk_threads(chunks, threads); ++i) {
    makers.push_back(std::make_unique<LineMaker>(options, *truth));
    make.push_back([maker = makers.back().get()](uint64_t chunk) { return maker->make(chunk); });
  }
  FLUX_RETURN_IF_ERROR(write_chunks(file.get(), chunks, make, [&](uint64_t chunk) {
    if (progress) progress(chunk * kChunk + LineMaker::size_of(options, chunk));
  }));
  FLUX_RETURN_IF_ERROR(file->commit());
  for (size_t i = 1; i < makers.size(); ++i) makers[0]->merge(*makers[i]);
  FeasignGenReport report = makers[0]->report();
  report.yaml = truth->yaml();
  return report;
}

}  // namespace flux
