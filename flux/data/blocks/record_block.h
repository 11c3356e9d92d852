// RecordBlock: the records of one block of a block file, in memory, in the order of an epoch.
//
// Chunks are checked against their hashes when they are loaded; what their records say of their own
// size is checked as they are read, so that no file can make a reader look elsewhere.
// Threads: immutable after load(), but for read_one_by_one(). Failure: kCorrupt with path and byte;
// kInvalid if the file is not the one that the pass was cut from, or with path and record if a
// number of it is none.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/data/blocks/block_file.h"
#include "flux/data/blocks/schema_map.h"
#include "flux/data/feature_plan.h"
#include "flux/data/number_check.h"
#include "flux/data/one_by_one.h"
#include "flux/data/text_block.h"

namespace flux {

// What all blocks of a file share.
struct RecordReading {
  explicit RecordReading(const DataOptions& options)
      : features(options),
        slots(options.slots),
        label_rules(options.label_rules),
        groups(!options.group.empty()),
        one_key(options.one_key),
        key_per_example(options.key_per_example) {
    RecordSchema schema = schema_of(options);
    names = {std::move(schema.labels), std::move(schema.dense), std::move(schema.slots)};
  }

  std::shared_ptr<const BlockFile> file;
  SchemaMap map;
  FeaturePlan features;
  std::vector<SlotOptions> slots;
  BatchNames names;  // of what is read, before features are computed
  std::vector<LabelRule> label_rules;
  bool groups = false;
  bool one_key = false;
  bool key_per_example = false;
  uint64_t first_record = 0;  // of the file, counted over all files of the pass
};

class RecordBlock final : public BlockReader, public OneByOne {
 public:
  RecordBlock(std::shared_ptr<const RecordReading> reading, const DataBlock& block,
              uint32_t batch_size, std::shared_ptr<BufferPool> pool);
  ~RecordBlock() override;
  RecordBlock(const RecordBlock&) = delete;
  RecordBlock& operator=(const RecordBlock&) = delete;

  Status load(std::vector<uint32_t> order);
  Status read_batch(uint32_t batch, Batch* out) const override;
  void read_one_by_one() override { batch_size_ = 1; }
  std::string describe(uint32_t batch) const override;
  std::string describe_example(uint32_t batch, uint32_t example) const override;

 private:
  struct Place {
    const char* at = nullptr;
    uint32_t bytes = 0;
    uint32_t count_bytes = 0;
  };
  Status load_chunk(const block_file::IndexEntry& chunk, char* bytes);
  Status place_records(const block_file::IndexEntry& chunk, const char* payload,
                       uint32_t count_bytes);
  Status corrupt(const block_file::IndexEntry& chunk, const std::string& what) const;
  Status broken(uint32_t record) const;
  Status refuse(uint32_t record, const std::string& what) const;
  Status check_numbers(std::span<const uint32_t> records, const Batch& batch) const;
  std::span<const uint32_t> records_of(uint32_t batch) const;
  uint64_t number_in_file(uint32_t record) const;
  uint64_t bytes_of_keys(const Place& place) const;
  void read_fixed(const Place& place, size_t example, Batch* out) const;
  // Where keys of the example end in *out; false: its counts do not fit its size.
  bool read_keys(const Place& place, size_t example, uint32_t* at, Batch* out) const;
  bool map_keys(const Place& place, size_t example, uint32_t* at, Batch* out) const;
  void size_batch(std::span<const uint32_t> records, Batch* out) const;

  const std::shared_ptr<const RecordReading> reading_;
  const DataBlock block_;
  uint32_t batch_size_;
  const std::shared_ptr<BufferPool> pool_;
  const uint32_t fixed_bytes_, key_bytes_, slots_;
  const bool many_keys_, values_;
  Buffer<char> bytes_;
  std::vector<Place> places_;  // of the records of the block
  std::vector<uint32_t> order_;
};

}  // namespace flux
