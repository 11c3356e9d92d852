// Batches of a block of lines that a LineParser reads.
#include <algorithm>
#include <cstring>

#include "flux/data/criteo.h"
#include "flux/data/feature_plan.h"
#include "flux/data/label_check.h"
#include "flux/data/one_key.h"
#include "flux/data/text/example_names.h"
#include "flux/data/text/line_parser.h"

namespace flux {
namespace {

static_assert(TextBlock::kSlack >= LineParser::kSlack);

struct LineReading {
  LineReading(const DataOptions& options, std::unique_ptr<const LineParser> lines)
      : parser(std::move(lines)),
        features(options),
        slots(options.key_per_example ? 1 : static_cast<uint32_t>(options.slots.size())),
        numbers(static_cast<uint32_t>(options.dense.size())),
        labels(options.labels),
        label_rules(options.label_rules),
        key_per_example(options.key_per_example),
        groups(!options.group.empty()),
        weights(options.weights),
        one_key(options.one_key && !options.key_per_example),
        names(options.slots),
        slices(options.slices.size()) {
    for (const SlotOptions& slot : options.slots) values = values || slot.values;
    values = values && !key_per_example;
  }

  std::unique_ptr<const LineParser> parser;
  FeaturePlan features;
  uint32_t slots, numbers;  // of the lines
  std::vector<std::string> labels;
  std::vector<LabelRule> label_rules;
  bool key_per_example, groups, weights, one_key, values = false;
  std::vector<SlotOptions> names;
  size_t slices;
};

// Puts the keys of a line in the order of their slots; those of one slot keep theirs.
void order_keys(LineRecord* record) {
  if (record->ordered) return;
  std::vector<uint32_t> order(record->count);
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return record->slots[a] < record->slots[b]; });
  const LineRecord before = *record;
  for (size_t i = 0; i < order.size(); ++i) {
    record->slots[i] = before.slots[order[i]];
    record->keys[i] = before.keys[order[i]];
    record->values[i] = before.values[order[i]];
  }
}

class LineBlock final : public TextBlock, public ExampleNames {
 public:
  LineBlock(std::shared_ptr<const LineReading> reading, TextBlockPlace place,
            std::shared_ptr<BufferPool> pool)
      : TextBlock(std::move(place), std::move(pool)), reading_(std::move(reading)) {}

  std::vector<std::string> names_of(uint32_t batch) const override {
    std::vector<std::string> out;
    for (const uint32_t record : records_of(batch))
      out.push_back(reading_->parser->name_of(line(record)));
    return out;
  }
  Status read_batch(uint32_t batch, Batch* out) const override {
    constexpr size_t kAhead = 2;
    const std::span<const uint32_t> records = records_of(batch);
    begin_batch(records.size(), out);
    LineRecord record;
    for (size_t i = 0; i < records.size(); ++i) {
      prefetch(records, i + kAhead);
      if (const auto wrong = reading_->parser->parse(line(records[i]), &record)) [[unlikely]]
        return refuse(records[i], wrong->column, wrong->what);
      add_numbers(record, i, out);
      if (reading_->key_per_example)
        out->keys[i] = criteo_example_key(number_in_pass(records[i]));
      else
        add_keys(&record, i, out);
    }
    if (const auto wrong = find_wrong_label(*out, reading_->label_rules))
      return refuse(records[wrong->example], 1, wrong->text(reading_->labels));
    if (const auto wrong = find_wrong_weight(*out))
      return refuse(records[wrong->example], 1, wrong->text());
    if (reading_->one_key)
      if (const auto wrong = take_one_key_each(out))
        return refuse(records[wrong->example], 1, wrong->text(reading_->names));
    reading_->features.apply(out);
    return Status::ok();
  }

 private:
  void begin_batch(size_t examples, Batch* out) const {
    const bool one_key = reading_->key_per_example;
    out->size = static_cast<uint32_t>(examples);
    out->slots = reading_->slots;
    out->dense = reading_->numbers;
    out->labels.resize(examples * reading_->labels.size());
    out->dense_values.resize(examples * reading_->numbers);
    out->keys.clear();
    if (one_key) out->keys.resize(examples);
    out->values.clear();
    out->begin.resize(one_key ? 0 : examples * reading_->slots + 1);
    if (!one_key) out->begin[0] = 0;
    out->weights.resize(reading_->weights ? examples : 0);
    out->groups.resize(reading_->groups ? examples : 0);
    out->slices.resize(reading_->slices * examples);
  }
  void add_numbers(const LineRecord& record, size_t i, Batch* out) const {
    for (size_t l = 0; l < record.labels.size(); ++l)
      out->labels[l * out->size + i] = record.labels[l];
    std::copy(record.dense.begin(), record.dense.end(),
              out->dense_values.begin() + static_cast<ptrdiff_t>(i * record.dense.size()));
    if (!out->weights.empty()) out->weights[i] = record.weight;
    if (!out->groups.empty()) out->groups[i] = record.group;
    for (size_t s = 0; s < record.slices.size(); ++s)
      out->slices[s * out->size + i] = record.slices[s];
  }
  void add_keys(LineRecord* record, size_t i, Batch* out) const {
    order_keys(record);
    uint32_t at = 0;
    const auto before = static_cast<uint32_t>(out->keys.size());
    uint32_t* ends = out->begin.data() + i * out->slots + 1;
    const uint32_t* slots = record->slots.data();
    for (uint32_t slot = 0; slot < out->slots; ++slot) {
      while (at < record->count && slots[at] == slot) ++at;
      ends[slot] = before + at;
    }
    const std::span<const uint64_t> keys = record->line_keys();
    out->keys.insert(out->keys.end(), keys.begin(), keys.end());
    const std::span<const float> values = record->line_values();
    if (reading_->values) out->values.insert(out->values.end(), values.begin(), values.end());
  }

  const std::shared_ptr<const LineReading> reading_;
};

class LineFormat final : public BlockFormat {
 public:
  LineFormat(const DataOptions& options, std::unique_ptr<const LineParser> parser)
      : reading_(std::make_shared<const LineReading>(options, std::move(parser))) {}
  std::unique_ptr<TextBlock> make(TextBlockPlace place,
                                  std::shared_ptr<BufferPool> pool) const override {
    return std::make_unique<LineBlock>(reading_, std::move(place), std::move(pool));
  }

 private:
  const std::shared_ptr<const LineReading> reading_;
};

}  // namespace

std::unique_ptr<const BlockFormat> line_format(const DataOptions& options,
                                               std::unique_ptr<const LineParser> parser) {
  return std::make_unique<LineFormat>(options, std::move(parser));
}

}  // namespace flux
