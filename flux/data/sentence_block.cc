// Batches of a block of sentences: a line is an example, its words are one slot, negatives drawn
// for it another one. What is drawn for a line depends on the seed, the epoch and its number in the
// pass alone, so a batch that is trained again draws the same.
#include "flux/base/hash.h"
#include "flux/data/block_readers.h"
#include "flux/data/plain_text.h"
#include "flux/data/word_sampler.h"

namespace flux {
namespace {

struct SentenceReading {
  SentenceReading(const Vocabulary& vocabulary, const DataOptions& options)
      : sampler(vocabulary, options.subsample),
        seed(options.seed),
        negatives(options.negatives),
        slots(features_of(options).slots) {}

  WordSampler sampler;
  uint64_t seed;
  uint32_t negatives, slots;
};

class SentenceBlock final : public TextBlock {
 public:
  SentenceBlock(std::shared_ptr<const SentenceReading> reading, TextBlockPlace place,
                std::shared_ptr<BufferPool> pool)
      : TextBlock(std::move(place), std::move(pool)), reading_(std::move(reading)) {}

  Status read_batch(uint32_t batch, Batch* out) const override {
    const std::span<const uint32_t> records = records_of(batch);
    out->size = static_cast<uint32_t>(records.size());
    out->slots = reading_->slots;
    out->dense = 0;
    for (std::vector<float>* unused : {&out->labels, &out->dense_values, &out->weights})
      unused->clear();
    out->groups.clear();
    out->keys.clear();
    out->begin.assign(1, 0);
    for (size_t i = 0; i < records.size(); ++i) {
      prefetch(records, i + 1);
      if (const auto wrong = find_no_text(line(records[i]))) [[unlikely]]
        return refuse(records[i], wrong->column, wrong->what);
      Random random(hash_pair(hash_pair(reading_->seed, epoch()), number_in_pass(records[i])));
      add_words(line(records[i]), &random, out);
      add_negatives(&random, out);
    }
    return Status::ok();
  }

 private:
  void add_words(std::string_view text, Random* random, Batch* out) const {
    const char *at = text.data(), *end = at + text.size();
    while (at < end) {
      const char* word = at;
      while (at < end && !parts_words(*at)) ++at;
      if (at > word) {
        const uint64_t key = word_key({word, static_cast<size_t>(at - word)});
        if (reading_->sampler.keep(key, random)) out->keys.push_back(key);
      }
      ++at;
    }
    out->begin.push_back(static_cast<uint32_t>(out->keys.size()));
  }
  void add_negatives(Random* random, Batch* out) const {
    for (uint32_t i = 0; i < reading_->negatives; ++i)
      out->keys.push_back(reading_->sampler.negative(random));
    out->begin.push_back(static_cast<uint32_t>(out->keys.size()));
  }

  const std::shared_ptr<const SentenceReading> reading_;
};

class SentenceFormat final : public BlockFormat {
 public:
  SentenceFormat(const Vocabulary& vocabulary, const DataOptions& options)
      : reading_(std::make_shared<const SentenceReading>(vocabulary, options)) {}
  std::unique_ptr<TextBlock> make(TextBlockPlace place,
                                  std::shared_ptr<BufferPool> pool) const override {
    return std::make_unique<SentenceBlock>(reading_, std::move(place), std::move(pool));
  }

 private:
  const std::shared_ptr<const SentenceReading> reading_;
};

}  // namespace

Result<std::unique_ptr<const BlockFormat>> sentence_format(const DataOptions& options) {
  FLUX_ASSIGN_OR_RETURN(const Vocabulary vocabulary, Vocabulary::load(options.vocabulary));
  return std::unique_ptr<const BlockFormat>(std::make_unique<SentenceFormat>(vocabulary, options));
}

}  // namespace flux
