// Batches of a block of feasign lines.
#include <algorithm>

#include "flux/data/block_readers.h"
#include "flux/data/criteo.h"
#include "flux/data/feasign_line.h"
#include "flux/data/feature_plan.h"
#include "flux/data/one_key.h"

namespace flux {
namespace {

struct FeasignReading {
  explicit FeasignReading(const DataOptions& options)
      : parser(options),
        features(options),
        slots(options.key_per_example ? 1 : static_cast<uint32_t>(options.slots.size())),
        numbers(static_cast<uint32_t>(options.dense.size())),
        labels(options.labels.size()),
        key_per_example(options.key_per_example),
        groups(!options.group.empty()),
        weights(options.weights),
        one_key(options.one_key && !options.key_per_example),
        names(options.slots),
        slices(options.slices.size()) {
    for (const SlotOptions& slot : options.slots) values = values || slot.values;
    values = values && !key_per_example;
  }

  FeasignParser parser;
  FeaturePlan features;
  uint32_t slots, numbers;  // of the lines
  size_t labels;
  bool key_per_example, groups, weights, one_key, values = false;
  std::vector<SlotOptions> names;
  size_t slices;
};

// Puts the keys of a line in the order of their slots; those of one slot keep theirs.
void order_keys(FeasignRecord* record) {
  if (record->ordered) return;
  std::vector<uint32_t> order(record->keys.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return record->slots[a] < record->slots[b]; });
  const FeasignRecord before = *record;
  for (size_t i = 0; i < order.size(); ++i) {
    record->slots[i] = before.slots[order[i]];
    record->keys[i] = before.keys[order[i]];
    if (!before.values.empty()) record->values[i] = before.values[order[i]];
  }
}

class FeasignBlock final : public TextBlock {
 public:
  FeasignBlock(std::shared_ptr<const FeasignReading> reading, TextBlockPlace place,
               std::shared_ptr<BufferPool> pool)
      : TextBlock(std::move(place), std::move(pool)), reading_(std::move(reading)) {}

  Status read_batch(uint32_t batch, Batch* out) const override {
    const std::span<const uint32_t> records = records_of(batch);
    begin_batch(records.size(), out);
    FeasignRecord record;
    for (size_t i = 0; i < records.size(); ++i) {
      prefetch(records, i + 1);
      if (const auto wrong = reading_->parser.parse(line(records[i]), &record))
        return refuse(records[i], wrong->column, wrong->what);
      for (size_t l = 0; l < record.labels.size(); ++l)
        out->labels[l * records.size() + i] = record.labels[l];
      std::copy(record.dense.begin(), record.dense.end(),
                out->dense_values.begin() + static_cast<ptrdiff_t>(i * record.dense.size()));
      if (!out->weights.empty()) out->weights[i] = record.weight;
      if (!out->groups.empty()) out->groups[i] = record.group;
      for (size_t s = 0; s < record.slices.size(); ++s)
        out->slices[s * records.size() + i] = record.slices[s];
      if (reading_->key_per_example)
        out->keys.push_back(criteo_example_key(number_in_pass(records[i])));
      else
        add_keys(&record, out);
    }
    if (reading_->one_key)
      if (const auto wrong = take_one_key_each(out))
        return refuse(records[wrong->example], 1, wrong->text(reading_->names));
    reading_->features.apply(out);
    return Status::ok();
  }

 private:
  void begin_batch(size_t examples, Batch* out) const {
    out->size = static_cast<uint32_t>(examples);
    out->slots = reading_->slots;
    out->dense = reading_->numbers;
    out->labels.resize(examples * reading_->labels);
    out->dense_values.resize(examples * reading_->numbers);
    out->keys.clear();
    out->values.clear();
    out->begin.assign(reading_->key_per_example ? 0 : 1, 0);
    out->weights.resize(reading_->weights ? examples : 0);
    out->groups.resize(reading_->groups ? examples : 0);
    out->slices.resize(reading_->slices * examples);
  }
  void add_keys(FeasignRecord* record, Batch* out) const {
    order_keys(record);
    size_t at = 0;
    const auto before = static_cast<uint32_t>(out->keys.size());
    for (uint32_t slot = 0; slot < out->slots; ++slot) {
      while (at < record->slots.size() && record->slots[at] == slot) ++at;
      out->begin.push_back(before + static_cast<uint32_t>(at));
    }
    out->keys.insert(out->keys.end(), record->keys.begin(), record->keys.end());
    if (reading_->values)
      out->values.insert(out->values.end(), record->values.begin(), record->values.end());
  }

  const std::shared_ptr<const FeasignReading> reading_;
};

class FeasignFormat final : public BlockFormat {
 public:
  explicit FeasignFormat(const DataOptions& options)
      : reading_(std::make_shared<const FeasignReading>(options)) {}
  std::unique_ptr<TextBlock> make(TextBlockPlace place,
                                  std::shared_ptr<BufferPool> pool) const override {
    return std::make_unique<FeasignBlock>(reading_, std::move(place), std::move(pool));
  }

 private:
  const std::shared_ptr<const FeasignReading> reading_;
};

}  // namespace

std::unique_ptr<const BlockFormat> feasign_format(const DataOptions& options) {
  return std::make_unique<FeasignFormat>(options);
}

}  // namespace flux
