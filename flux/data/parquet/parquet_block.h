// ParquetBlock: the rows of one block of a Parquet file, in memory, in the order of an epoch.
//
// Where that is the order of the file, columns become rows when a batch is read; else all of the
// block are rows before, as those of a batch lie anywhere.
// Threads: immutable. Failure: kInvalid with path, record and column for a label, weight, number or
// value of a key that is missing or not finite, and for a label that its loss cannot be of.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/data/dataset.h"
#include "flux/data/feature_plan.h"
#include "flux/data/parquet/large_numbers.h"
#include "flux/data/parquet/parquet_file.h"
#include "flux/data/parquet/row_block.h"

namespace flux {

// What all blocks of a dataset share.
struct ParquetReading {
  explicit ParquetReading(const DataOptions& options)
      : features(options),
        labels(options.labels),
        label_rules(options.label_rules),
        dense(options.dense),
        slots(options.slots),
        key_per_example(options.key_per_example),
        one_key(options.one_key && !options.key_per_example) {}
  FeaturePlan features;
  std::vector<std::string> labels;
  std::vector<LabelRule> label_rules;
  std::vector<std::string> dense;
  std::vector<SlotOptions> slots;
  bool key_per_example, one_key;
};

// Whether these rows lie side by side, in the order of the file.
bool follow_each_other(std::span<const uint32_t> rows);

class ParquetBlock final : public BlockReader {
 public:
  // All rows of the block, in the order of the file: columns that have them, if those of `order`
  // follow each other, else themselves.
  struct Content {
    std::shared_ptr<const RowLayout> layout;
    std::shared_ptr<const ParquetColumns> columns;
    std::shared_ptr<const Batch> rows;
    LargeNumbers large = {};  // by their places in the layout's map
    uint32_t from = 0;        // the block's first row in `columns`
  };
  ParquetBlock(std::shared_ptr<const ParquetReading> reading, std::string path, Content content,
               DataBlock block, uint32_t batch_size, std::vector<uint32_t> order);

  Status read_batch(uint32_t batch, Batch* out) const override;
  std::string describe(uint32_t batch) const override;
  std::string describe_example(uint32_t batch, uint32_t example) const override;

 private:
  std::span<const uint32_t> records_of(uint32_t batch) const;
  Status fill(std::span<const uint32_t> records, Batch* out) const;
  void gather_numbers(std::span<const uint32_t> records, Batch* out) const;
  uint64_t number_in_file(uint32_t row) const { return block_.lines_before + row + 1; }
  void gather_one_key_each(std::span<const uint32_t> records, Batch* out) const;
  void gather_keys(std::span<const uint32_t> records, Batch* out) const;
  Status set_keys(std::span<const uint32_t> records, Batch* out) const;
  Status check_numbers(std::span<const uint32_t> records, const Batch& batch) const;
  Status check_values(std::span<const uint32_t> records, const Batch& batch) const;
  // A number that is not finite.
  struct BadNumber {
    const char* what;  // it is, and its name
    std::string_view name;
    float value;
    uint32_t column, index;  // of the layout's map, and among the row's numbers in it
  };
  Status refuse(uint32_t record, const BadNumber& bad) const;

  const std::shared_ptr<const ParquetReading> reading_;
  const std::string path_;
  const Content content_;
  const DataBlock block_;
  const uint32_t batch_size_;
  const std::vector<uint32_t> order_;
};

}  // namespace flux
