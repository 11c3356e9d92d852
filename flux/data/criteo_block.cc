// Batches of a block of Criteo lines.
#include <cstring>

#include "flux/data/block_readers.h"
#include "flux/data/criteo.h"
#include "flux/data/criteo_line.h"
#include "flux/data/feature_plan.h"
#include "flux/data/reference_parser.h"

namespace flux {
namespace {

static_assert(TextBlock::kSlack >= kCriteoSlack);

struct Reading {
  explicit Reading(const DataOptions& options)
      : features(options), key_per_example(options.key_per_example) {}
  FeaturePlan features;
  bool key_per_example = false;
};

class CriteoBlock final : public TextBlock {
 public:
  CriteoBlock(std::shared_ptr<const Reading> reading, TextBlockPlace place,
              std::shared_ptr<BufferPool> pool)
      : TextBlock(std::move(place), std::move(pool)), reading_(std::move(reading)) {}

  Status read_batch(uint32_t batch, Batch* out) const override {
    const std::span<const uint32_t> records = records_of(batch);
    size_batch(records.size(), out);
    constexpr size_t kAhead = 4;
    for (size_t i = 0; i < kAhead; ++i) prefetch(records, i);
    CriteoRecord record;
    float* dense = out->dense_values.data();
    uint64_t* keys = out->keys.data();
    for (size_t i = 0; i < records.size(); ++i) {
      prefetch(records, i + kAhead);
      FLUX_RETURN_IF_ERROR(parse(records[i], &record));
      out->labels[i] = record.label;
      std::memcpy(dense, record.dense, kCriteoDense * sizeof(float));
      dense += kCriteoDense;
      if (reading_->key_per_example) {
        *keys++ = criteo_example_key(number_in_pass(records[i]));
      } else {
        std::memcpy(keys, record.keys, kCriteoSlots * sizeof(uint64_t));
        keys += kCriteoSlots;
      }
    }
    reading_->features.apply(out);
    return Status::ok();
  }

 private:
  void size_batch(size_t examples, Batch* out) const {
    out->size = static_cast<uint32_t>(examples);
    out->slots = reading_->key_per_example ? 1 : kCriteoSlots;
    out->dense = kCriteoDense;
    out->labels.resize(examples);
    out->dense_values.resize(examples * kCriteoDense);
    out->keys.resize(examples * out->slots);
  }
  Status parse(uint32_t record, CriteoRecord* out) const {
    const std::string_view text = line(record);
    if (parse_criteo_line(text.data(), text.size(), out)) [[likely]]
      return Status::ok();
    const auto wrong = reference_parse_line(text, out);
    if (!wrong) return Status::ok();
    return refuse(record, wrong->column, wrong->what);
  }

  const std::shared_ptr<const Reading> reading_;
};

class CriteoFormat final : public BlockFormat {
 public:
  explicit CriteoFormat(const DataOptions& options)
      : reading_(std::make_shared<const Reading>(options)) {}
  std::unique_ptr<TextBlock> make(TextBlockPlace place,
                                  std::shared_ptr<BufferPool> pool) const override {
    return std::make_unique<CriteoBlock>(reading_, std::move(place), std::move(pool));
  }

 private:
  const std::shared_ptr<const Reading> reading_;
};

}  // namespace

std::unique_ptr<const BlockFormat> criteo_format(const DataOptions& options) {
  return std::make_unique<CriteoFormat>(options);
}

}  // namespace flux
