// Block files against the text they were made from, and against everything that can be wrong.
#include "flux/data/blocks/block_file.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/data/blocks/writer.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

SlotOptions slot_named(const std::string& name, bool values = false) {
  SlotOptions slot;
  slot.name = name;
  slot.values = values;
  return slot;
}

DataOptions lines_with(uint32_t slots, bool rest) {
  DataOptions options;
  options.format = "feasign";
  options.batch_size = 7;
  options.dense_transform = "none";
  for (uint32_t s = 0; s < slots; ++s) options.slots.push_back(slot_named(fmt::format("s{}", s)));
  options.dense = {"price", "age"};
  if (!rest) return options;
  options.labels = {"click", "buy"};
  options.weights = true;
  options.group = "s1";
  return options;
}

std::string made_lines(const DataOptions& options, size_t count, uint32_t keys_max) {
  Random random(count);
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += options.labels.size() == 2 ? fmt::format("{},{}", i % 2, i % 3 == 0 ? 1 : 0) : "1";
    if (options.weights) text += fmt::format(" w={}", random.below(100) * 0.25);
    for (const SlotOptions& slot : options.slots)
      for (uint64_t k = random.below(keys_max + 1); k > 0; --k)
        text += fmt::format(" {}:{}{}", slot.name, random.next(),
                            slot.values ? fmt::format(":{}", random.below(9) * 0.5) : "");
    text += fmt::format(" price:{} age:{}\n", random.uniform() - 0.5, i);
  }
  return text;
}

Result<std::unique_ptr<Dataset>> open_data(const std::string& path, const DataOptions& options) {
  FLUX_ASSIGN_OR_RETURN(const Geometry cut, Dataset::scan({&path, 1}, options, 1));
  FLUX_ASSIGN_OR_RETURN(const Geometry again, Geometry::from_json(cut.to_json()));
  return Dataset::open(again, options);
}

Status read_all(const Dataset& data, uint32_t epoch, std::vector<Batch>* out) {
  for (uint32_t b = 0; b < data.geometry().blocks.size(); ++b) {
    FLUX_ASSIGN_OR_RETURN(const auto block, data.open_block(b, epoch));
    for (uint32_t i = 0; i < data.geometry().batches_in(b); ++i)
      FLUX_RETURN_IF_ERROR(block->read_batch(i, &out->emplace_back()));
  }
  return Status::ok();
}

std::vector<Batch> batches_of(const std::string& path, const DataOptions& options,
                              uint32_t epoch = 0) {
  std::vector<Batch> out;
  const auto data = open_data(path, options);
  EXPECT_TRUE(data.is_ok()) << data.status().message();
  if (!data.is_ok()) return out;
  const Status status = read_all(*data.value(), epoch, &out);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return out;
}

void expect_same(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].labels, b[i].labels);
    EXPECT_EQ(a[i].dense_values, b[i].dense_values);
    EXPECT_EQ(a[i].begin, b[i].begin);
    EXPECT_EQ(a[i].keys, b[i].keys);
    EXPECT_EQ(a[i].values, b[i].values);
    EXPECT_EQ(a[i].weights, b[i].weights);
    EXPECT_EQ(a[i].groups, b[i].groups);
  }
}

class BlockFiles : public testing::Test {
 protected:
  // The text as a block file, in the order of its lines.
  std::string convert(const std::string& text_path, DataOptions options, const char* name) {
    options.shuffle = false;
    std::string path = folder_.path(name);
    auto writer = BlockFileWriter::create(path, schema_of(options));
    EXPECT_TRUE(writer.is_ok()) << writer.status().message();
    for (const Batch& batch : batches_of(text_path, options))
      EXPECT_TRUE(writer.value()->add(batch).is_ok());
    EXPECT_TRUE(writer.value()->finish().is_ok());
    return path;
  }
  static DataOptions as_blocks(DataOptions options) {
    options.format = "blocks";
    return options;
  }
  TestDirectory folder_;
};

TEST_F(BlockFiles, GiveWhatTheTextGives) {
  for (const uint32_t keys_max : {1U, 3U, 400U}) {
    for (const bool rest : {false, true}) {
      DataOptions options = lines_with(4, rest);
      const size_t count = keys_max > 3 ? 300 : 9001;  // more than two chunks
      const std::string text = folder_.write("a.txt", made_lines(options, count, keys_max));
      const std::string blocks = convert(text, options, "a.blocks");
      for (const uint32_t epoch : {0U, 3U})
        expect_same(batches_of(text, options, epoch),
                    batches_of(blocks, as_blocks(options), epoch));
    }
  }
}

TEST_F(BlockFiles, KeysMayHaveValues) {
  DataOptions options = lines_with(3, false);
  options.slots[1].values = true;
  const std::string text = folder_.write("a.txt", made_lines(options, 200, 4));
  const std::string blocks = convert(text, options, "a.blocks");
  expect_same(batches_of(text, options), batches_of(blocks, as_blocks(options)));
  std::swap(options.slots[0], options.slots[1]);
  expect_same(batches_of(text, options), batches_of(blocks, as_blocks(options)));
  options.slots[0].values = false;
  EXPECT_EQ(open_data(blocks, as_blocks(options)).status().message(),
            blocks +
                ": the keys of its records have values, but no slot of the job says values: "
                "true");
}

TEST_F(BlockFiles, FeaturesAreComputedFromThem) {
  DataOptions options = lines_with(2, false);
  FeatureOptions cross;
  cross.name = "both";
  cross.op = "cross";
  cross.of = {"s0", "s1"};
  const std::string text = folder_.write("a.txt", made_lines(options, 50, 2));
  const std::string blocks = convert(text, options, "a.blocks");
  options.features.push_back(cross);
  options.hidden = {"s1"};
  options.dense_transform = "log1p";
  expect_same(batches_of(text, options), batches_of(blocks, as_blocks(options)));
}

TEST_F(BlockFiles, ASlotMayHaveMoreKeysThanTwoBytesCount) {
  const DataOptions options = lines_with(2, false);
  std::string line = "1";
  for (int k = 0; k < 70000; ++k) line += fmt::format(" s1:{}", k);
  const std::string text = folder_.write("a.txt", "0 s0:1\n" + line + "\n0 s0:7\n");
  expect_same(batches_of(text, options),
              batches_of(convert(text, options, "a.blocks"), as_blocks(options)));
}

TEST_F(BlockFiles, OneKeyPerSlotNeedsNoCounts) {
  DataOptions criteo;
  criteo.batch_size = 5;
  criteo.dense_transform = "none";
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "1";
    for (int d = 0; d < 13; ++d) text += fmt::format("\t{}", d + i * 0.5);
    for (int s = 0; s < 26; ++s) text += fmt::format("\t{:x}", i * 77 + s);
    text += "\n";
  }
  const std::string source = folder_.write("a.tsv", text);
  const std::string blocks = convert(source, criteo, "a.blocks");
  DataOptions options = criteo;
  options.format = "blocks";
  for (int d = 1; d <= 13; ++d) options.dense.push_back(fmt::format("I{}", d));
  for (int s = 1; s <= 26; ++s) options.slots.push_back(slot_named(fmt::format("C{}", s)));
  const std::vector<Batch> want = batches_of(source, criteo), got = batches_of(blocks, options);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(want[i].keys, got[i].keys);
    EXPECT_EQ(want[i].dense_values, got[i].dense_values);
    ASSERT_EQ(got[i].begin.size(), got[i].keys.size() + 1);
    for (size_t k = 0; k < got[i].begin.size(); ++k) EXPECT_EQ(got[i].begin[k], k);
  }
}

TEST_F(BlockFiles, AJobMayHaveItsNamesInAnotherOrder) {
  const DataOptions options = lines_with(3, true);
  const std::string text = folder_.write("a.txt", made_lines(options, 100, 3));
  const std::string blocks = convert(text, options, "a.blocks");
  DataOptions other = options;
  std::reverse(other.slots.begin(), other.slots.end());
  std::reverse(other.dense.begin(), other.dense.end());
  expect_same(batches_of(text, other), [&] {
    std::vector<Batch> got = batches_of(blocks, as_blocks(other));
    return got;
  }());
  std::reverse(other.labels.begin(), other.labels.end());
  const std::vector<Batch> swapped = batches_of(blocks, as_blocks(other));
  const std::vector<Batch> straight = batches_of(blocks, as_blocks(options));
  for (size_t i = 0; i < swapped.size(); ++i)
    for (uint32_t e = 0; e < swapped[i].size; ++e)
      EXPECT_EQ(swapped[i].labels[e], straight[i].labels[swapped[i].size + e]);
}

TEST_F(BlockFiles, WhatTheJobAndTheFileDoNotBothNameIsRefused) {
  const DataOptions options = lines_with(2, true);
  const std::string text = folder_.write("a.txt", made_lines(options, 10, 2));
  const std::string blocks = convert(text, options, "a.blocks");
  const auto refusal = [&](const std::function<void(DataOptions*)>& change) {
    DataOptions changed = as_blocks(options);
    change(&changed);
    const auto data = open_data(blocks, changed);
    EXPECT_FALSE(data.is_ok());
    EXPECT_EQ(data.status().code(), Code::kInvalid);
    return data.status().message();
  };
  EXPECT_EQ(refusal([](DataOptions* o) { o->slots.push_back(slot_named("s11")); }),
            blocks + ": its records have no slot 's11', did you mean 's1'?; they have: s0, s1");
  EXPECT_EQ(refusal([](DataOptions* o) { o->dense.pop_back(); }),
            blocks + ": its records have the dense feature 'age', which the job does not declare");
  EXPECT_EQ(refusal([](DataOptions* o) { o->weights = false; }),
            blocks + ": its records have weights, but the job does not say data.weights: true");
}

TEST_F(BlockFiles, TheCountingModelHasAKeyPerExample) {
  DataOptions options = lines_with(2, false);
  const std::string text = folder_.write("a.txt", made_lines(options, 50, 2));
  const std::string blocks = convert(text, options, "a.blocks");
  options.key_per_example = true;
  expect_same(batches_of(text, options, 1), batches_of(blocks, as_blocks(options), 1));
}

// Every byte of a small file is changed, every length is tried: each is refused, or, where the byte
// says nothing (the unused one of the head), gives the same batches.
TEST_F(BlockFiles, DamageIsNoticedWhereverItIs) {
  const DataOptions options = lines_with(2, true);
  const std::string text = folder_.write("a.txt", made_lines(options, 9, 2));
  const std::string good = read_text(convert(text, options, "a.blocks"));
  const std::vector<Batch> want = batches_of(text, options);
  size_t unnoticed = 0;
  const auto check = [&](const std::string& bytes) {
    const std::string path = folder_.write("b.blocks", bytes);
    const auto data = open_data(path, as_blocks(options));
    std::vector<Batch> got;
    const Status status = data.is_ok() ? read_all(*data.value(), 0, &got) : data.status();
    if (status.is_ok()) {
      ++unnoticed;
      return expect_same(want, got);
    }
    EXPECT_TRUE(status.code() == Code::kCorrupt || status.code() == Code::kInvalid)
        << status.message();
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  };
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    check(bad);
  }
  EXPECT_EQ(unnoticed, sizeof(block_file::Head::unused));
  for (size_t size = 0; size < good.size(); ++size) check(good.substr(0, size));
  EXPECT_EQ(unnoticed, sizeof(block_file::Head::unused));
}

// Check sums that are right do not make what is written right.
TEST_F(BlockFiles, AWriterThatErrsIsNotBelieved) {
  const DataOptions options = lines_with(2, false);
  const std::string text = folder_.write("a.txt", "1 s0:1 s0:2 s1:3\n0 s1:4\n");
  const std::string path = convert(text, options, "a.blocks");
  const auto opened = BlockFile::open(path);
  ASSERT_TRUE(opened.is_ok());
  const block_file::IndexEntry chunk = opened.value()->chunks()[0];
  const std::string good = read_text(path);
  const size_t payload = chunk.offset + sizeof(block_file::ChunkHead);
  size_t refused = 0;
  for (size_t i = 0; i < chunk.payload_bytes; ++i) {
    std::string bad = good;
    bad[payload + i] = static_cast<char>(bad[payload + i] ^ 1);
    // As a writer would have signed it.
    block_file::ChunkHead head;
    std::memcpy(&head, bad.data() + chunk.offset, sizeof head);
    head.payload_hash = hash_bytes(bad.data() + payload, chunk.payload_bytes);
    head.head_hash = head.computed_hash();
    std::memcpy(bad.data() + chunk.offset, &head, sizeof head);
    const size_t index = payload + chunk.payload_bytes;
    block_file::IndexEntry entry = chunk;
    entry.payload_hash = head.payload_hash;
    std::memcpy(bad.data() + index + sizeof head, &entry, sizeof entry);
    std::memcpy(&head, bad.data() + index, sizeof head);
    head.payload_hash = hash_bytes(&entry, sizeof entry);
    head.head_hash = head.computed_hash();
    std::memcpy(bad.data() + index, &head, sizeof head);
    const auto data = open_data(folder_.write("b.blocks", bad), as_blocks(options));
    ASSERT_TRUE(data.is_ok()) << data.status().message();
    std::vector<Batch> got;
    if (!read_all(*data.value(), 0, &got).is_ok()) ++refused;
  }
  // The table (3 numbers) and the counts (2 records of 2 slots); other bytes are any numbers.
  EXPECT_EQ(refused, 3 * sizeof(uint32_t) + 4);
}

// The files are also those of tests/e2e/_bad_blocks.py.
TEST_F(BlockFiles, NumbersThatAreNoneAreRefusedByTheirRecord) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  DataOptions options;
  options.format = "blocks";
  options.slots = {slot_named("user"), slot_named("item", true)};
  options.dense = {"price"};
  options.shuffle = false;
  const struct {
    const char* name;
    std::function<void(Batch*)> spoil;
    const char* what;
  } cases[] = {
      {"nan_label", [](Batch* b) { b->labels[1] = kNan; }, "label 'label' is nan"},
      {"inf_dense", [](Batch* b) { b->dense_values[1] = kInf; }, "dense feature 'price' is inf"},
      {"nan_value", [](Batch* b) { b->values[4] = -kNan; }, "a value of slot 'item' is nan"},
      {"negative_weight",
       [](Batch* b) {
         b->weights = {1, -1, 1};
       },
       "weight -1"},
      {"nan_weight",
       [](Batch* b) {
         b->weights = {1, kNan, 1};
       },
       "weight nan"}};
  for (const auto& [name, spoil, what] : cases) {
    Batch batch;
    batch.size = 3;
    batch.slots = 2;
    batch.dense = 1;
    batch.labels = {1, 0, 1};
    batch.dense_values = {0.5F, 1, 2};
    batch.keys = {7, 8, 9, 17, 18, 27};
    batch.begin = {0, 1, 3, 4, 5, 6, 6};
    batch.values = {1, 0.5F, 2, 1, 3, 1};
    spoil(&batch);
    options.weights = !batch.weights.empty();
    const std::string path = fmt::format("{}{}.blocks", testing::TempDir(), name);  // it stays
    auto writer = BlockFileWriter::create(path, schema_of(options));
    ASSERT_TRUE(writer.is_ok() && writer.value()->add(batch).is_ok());
    ASSERT_TRUE(writer.value()->finish().is_ok());
    const std::string golden = fmt::format("{}/tests/golden/{}.blocks", FLUX_SOURCE_DIR, name);
    EXPECT_EQ(read_text(path), read_text(golden)) << fmt::format("cp {} {}", path, golden);
    const auto data = open_data(path, options);
    ASSERT_TRUE(data.is_ok()) << data.status().message();
    std::vector<Batch> got;
    const Status status = read_all(*data.value(), 0, &got);
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_TRUE(status.message().starts_with(fmt::format("{}: record 2: {}", path, what)))
        << status.message();
  }
}

TEST_F(BlockFiles, AWriterThatIsGivenUpLeavesNothing) {
  {
    auto writer = BlockFileWriter::create(folder_.path("a.blocks"), RecordSchema{});
    ASSERT_TRUE(writer.is_ok());
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.blocks")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("a.blocks.tmp")));
  EXPECT_EQ(BlockFileWriter::create(folder_.path("no/a.blocks"), {}).status().code(), Code::kIo);
}

TEST_F(BlockFiles, TextIsNoBlockFile) {
  const std::string path = folder_.write("a.txt", "1 s0:1\n");
  DataOptions options = as_blocks(lines_with(1, false));
  EXPECT_EQ(open_data(path, options).status().message(),
            path +
                ": is no block file: it does not begin with FLUXBLK1; name its format in "
                "data.format, or make block files with 'flux data convert'");
}

}  // namespace
}  // namespace flux
