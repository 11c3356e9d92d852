#include "flux/data/dataset.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/data/criteo.h"
#include "flux/data/log1p.h"
#include "flux/data/reference_parser.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

// Lines of very different lengths; the record's number is its first token.
std::vector<std::string> make_lines(size_t count, uint64_t seed) {
  Random r(seed);
  std::vector<std::string> lines;
  for (size_t i = 0; i < count; ++i) {
    std::string line = r.chance(0.4) ? "1" : "0";
    for (uint32_t d = 0; d < kCriteoDense; ++d)
      line += r.chance(0.2) ? "\t" : fmt::format("\t{:.4f}", r.exponential() - 0.1);
    line += fmt::format("\t{:x}", i);
    for (uint32_t s = 1; s < kCriteoSlots; ++s)
      line += r.chance(0.2) ? "\t" : fmt::format("\t{:x}", r.next() >> (32 + r.below(20)));
    lines.push_back(line);
  }
  return lines;
}

std::string text_of(const std::vector<std::string>& lines, const char* newline = "\n") {
  std::string out;
  for (const std::string& line : lines) out += line + newline;
  return out;
}

std::unique_ptr<Dataset> open_all(const std::vector<std::string>& files, const DataOptions& options,
                                  unsigned threads = 2) {
  auto geometry = Dataset::scan(files, options, threads);
  EXPECT_TRUE(geometry.is_ok()) << geometry.status().message();
  if (!geometry.is_ok()) return nullptr;
  auto data = Dataset::open(geometry.value(), options);
  EXPECT_TRUE(data.is_ok()) << data.status().message();
  return data.is_ok() ? std::move(data).value() : nullptr;
}

// All batches of an epoch, put one behind the other.
Batch read_epoch(const Dataset& data, uint32_t epoch) {
  Batch all;
  Batch batch;
  const Geometry& g = data.geometry();
  for (uint32_t b = 0; b < g.blocks.size(); ++b) {
    auto block = data.open_block(b, epoch);
    EXPECT_TRUE(block.is_ok()) << block.status().message();
    if (!block.is_ok()) return all;
    for (uint32_t j = 0; j < g.batches_in(b); ++j) {
      const Status status = block.value()->read_batch(j, &batch);
      EXPECT_TRUE(status.is_ok()) << status.message();
      EXPECT_EQ(batch.size, g.batch_records(b, j));
      EXPECT_EQ(batch.slots, data.features().slots);
      EXPECT_EQ(batch.dense, data.features().dense);
      all.size += batch.size;
      all.labels.insert(all.labels.end(), batch.labels.begin(), batch.labels.end());
      all.dense_values.insert(all.dense_values.end(), batch.dense_values.begin(),
                              batch.dense_values.end());
      all.keys.insert(all.keys.end(), batch.keys.begin(), batch.keys.end());
    }
  }
  return all;
}

// What the plain parser makes of the lines, in their order.
Batch expected(const std::vector<std::string>& lines) {
  Batch out;
  for (const std::string& line : lines) {
    CriteoRecord record;
    EXPECT_FALSE(reference_parse_line(line, &record).has_value()) << line;
    out.labels.push_back(record.label);
    out.dense_values.insert(out.dense_values.end(), record.dense, record.dense + kCriteoDense);
    out.keys.insert(out.keys.end(), record.keys, record.keys + kCriteoSlots);
  }
  log1p_relu(out.dense_values);
  return out;
}

void expect_equal(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.dense_values, b.dense_values);
  EXPECT_EQ(a.keys, b.keys);
}

// The failure of scan, open, open_block or read_batch, whichever is first.
Status failure(const std::string& path) {
  DataOptions options;
  options.shuffle = false;
  auto geometry = Dataset::scan({&path, 1}, options, 1);
  FLUX_RETURN_IF_ERROR(geometry.is_ok() ? Status::ok() : geometry.status());
  FLUX_ASSIGN_OR_RETURN(const auto data, Dataset::open(geometry.value(), options));
  for (uint32_t b = 0; b < geometry.value().blocks.size(); ++b) {
    FLUX_ASSIGN_OR_RETURN(const auto block, data->open_block(b, 0));
    Batch batch;
    for (uint32_t j = 0; j < geometry.value().batches_in(b); ++j)
      FLUX_RETURN_IF_ERROR(block->read_batch(j, &batch));
  }
  return Status::ok();
}

TEST(Dataset, ReadsWhatThePlainParserReads) {
  const TestDirectory dir;
  const auto lines = make_lines(5000, 1);
  DataOptions options;
  options.shuffle = false;
  options.batch_size = 17;
  const Batch want = expected(lines);
  for (const char* newline : {"\n", "\r\n"}) {
    const std::string path = dir.write("a.tsv", text_of(lines, newline));
    expect_equal(read_epoch(*open_all({path}, options), 0), want);
  }
  std::string text = text_of(lines);
  text.pop_back();
  expect_equal(read_epoch(*open_all({dir.write("cut.tsv", text)}, options), 0), want);
  expect_equal(read_epoch(*open_all({dir.write("a.gz", gzip_text(text))}, options), 0), want);
}

TEST(Dataset, EveryRecordOncePerEpoch) {
  const TestDirectory dir;
  const auto lines = make_lines(9001, 2);
  const std::string a = dir.write("a.tsv", text_of({lines.begin(), lines.begin() + 4000}));
  const std::string b =
      dir.write("b.tsv.gz", gzip_text(text_of({lines.begin() + 4000, lines.end()})));
  for (const uint32_t batch_size : {1U, 3U, 64U, 1000U, 100000U}) {
    DataOptions options;
    options.batch_size = batch_size;
    const auto data = open_all({a, b}, options);
    std::vector<std::vector<uint64_t>> epochs;
    for (uint32_t epoch = 0; epoch < 2; ++epoch) {
      const Batch all = read_epoch(*data, epoch);
      std::vector<uint64_t> numbers;
      for (uint32_t i = 0; i < all.size; ++i)
        numbers.push_back(all.keys[i * kCriteoSlots] & 0xffffffff);
      epochs.push_back(numbers);
      std::sort(numbers.begin(), numbers.end());
      ASSERT_EQ(numbers.size(), lines.size());
      for (uint64_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i);
    }
    EXPECT_NE(epochs[0], epochs[1]) << batch_size;
    expect_equal(read_epoch(*data, 1), read_epoch(*open_all({a, b}, options), 1));
  }
}

TEST(Dataset, OrderDiffersFromTheFileAndByEpoch) {
  const TestDirectory dir;
  const auto lines = make_lines(60, 3);
  DataOptions options;
  options.batch_size = 60;
  const auto data = open_all({dir.write("a.tsv", text_of(lines))}, options);
  const Batch all = read_epoch(*data, 0);
  EXPECT_NE(all.keys, expected(lines).keys);
  EXPECT_NE(all.keys, read_epoch(*data, 1).keys);
}

TEST(Dataset, GeometryDoesNotDependOnThreads) {
  const TestDirectory dir;
  // Larger than several chunks and parts of the scan.
  const auto lines = make_lines(90000, 4);
  const std::string text = text_of(lines);
  ASSERT_GT(text.size(), size_t{16} << 20);
  const std::vector<std::string> files = {dir.write("a.tsv", text),
                                          dir.write("b.gz", gzip_text(text, 1))};
  DataOptions options;
  options.batch_size = 10;
  const Geometry g = Dataset::scan(files, options, 1).value();
  EXPECT_EQ(g.hash(), Dataset::scan(files, options, 4).value().hash());
  EXPECT_EQ(g.records(), 180000U);
  EXPECT_TRUE(Geometry::from_json(g.to_json()).is_ok());
  // Each block begins where counting lines one by one says.
  std::vector<uint64_t> begins;
  for (uint64_t i = 0, at = 0; i < lines.size(); at += lines[i++].size() + 1) begins.push_back(at);
  for (const DataBlock& block : g.blocks) {
    ASSERT_LE(block.records, 320U);
    ASSERT_EQ(block.begin, begins[block.first_record % 90000]);
  }
}

TEST(Dataset, GzipInAnyOrderEqualsPlain) {
  const TestDirectory dir;
  const auto lines = make_lines(20000, 5);
  const std::string text = text_of(lines);
  const size_t half = text.size() / 2;
  const std::string members = gzip_text(text.substr(0, half)) + gzip_text("") +
                              gzip_text(text.substr(half), 9) + std::string(512, '\0');
  DataOptions options;
  options.batch_size = 10;
  const auto plain = open_all({dir.write("a.tsv", text)}, options);
  for (const std::string& bytes : {gzip_text(text), members, gzip_text(text, 0)}) {
    const auto packed = open_all({dir.write("a.gz", bytes)}, options);
    const auto blocks = static_cast<uint32_t>(plain->geometry().blocks.size());
    ASSERT_EQ(packed->geometry().blocks.size(), blocks);
    ASSERT_GT(blocks, 30U);
    Batch a;
    Batch b;
    for (uint32_t i = 0; i < 2 * blocks; ++i) {
      const uint32_t block = (i * 7919 + blocks / 2) % blocks;
      ASSERT_TRUE(plain->open_block(block, 3).value()->read_batch(0, &a).is_ok());
      ASSERT_TRUE(packed->open_block(block, 3).value()->read_batch(0, &b).is_ok());
      expect_equal(a, b);
      ASSERT_FALSE(testing::Test::HasFailure()) << block;
    }
  }
}

TEST(Dataset, ManyThreadsReadTheSame) {
  const TestDirectory dir;
  const auto lines = make_lines(4000, 6);
  const std::vector<std::string> files = {dir.write("a.tsv", text_of(lines)),
                                          dir.write("b.gz", gzip_text(text_of(lines)))};
  DataOptions options;
  options.batch_size = 16;
  const auto data = open_all(files, options);
  const Batch want = read_epoch(*data, 1);
  const auto fresh = open_all(files, options);
  std::vector<Batch> got(4);
  std::vector<std::thread> threads;
  for (Batch& out : got) threads.emplace_back([&] { out = read_epoch(*fresh, 1); });
  // Several threads on one block as well.
  const auto block = fresh->open_block(0, 1).value();
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      Batch batch;
      EXPECT_TRUE(block->read_batch(0, &batch).is_ok());
      EXPECT_TRUE(std::equal(batch.keys.begin(), batch.keys.end(), want.keys.begin()));
    });
  for (std::thread& thread : threads) thread.join();
  for (const Batch& out : got) expect_equal(out, want);
}

TEST(Dataset, KeyPerExampleCountsOverFiles) {
  const TestDirectory dir;
  const auto lines = make_lines(100, 7);
  DataOptions options;
  options.key_per_example = true;
  options.dense_transform = "none";
  options.batch_size = 9;
  const auto data =
      open_all({dir.write("a", text_of(lines)), dir.write("b", text_of(lines))}, options);
  EXPECT_EQ(data->features().slots, 1U);
  Batch all = read_epoch(*data, 4);
  CriteoRecord record;
  for (uint32_t i = 0; i < all.size; ++i) {
    const uint64_t number = all.keys[i] & ~(1ULL << 56);
    ASSERT_FALSE(reference_parse_line(lines[number % 100], &record).has_value());
    ASSERT_TRUE(std::equal(record.dense, record.dense + kCriteoDense, &all.dense_values[i * 13]));
  }
  std::sort(all.keys.begin(), all.keys.end());
  for (uint64_t i = 0; i < 200; ++i) EXPECT_EQ(all.keys[i], i | (1ULL << 56));
}

TEST(Dataset, ReusesTheMemoryOfABatch) {
  const TestDirectory dir;
  DataOptions options;
  options.batch_size = 50;
  const auto data = open_all({dir.write("a", text_of(make_lines(100, 8)))}, options);
  Batch batch;
  ASSERT_TRUE(data->open_block(0, 0).value()->read_batch(0, &batch).is_ok());
  const void* before[] = {batch.labels.data(), batch.dense_values.data(), batch.keys.data()};
  ASSERT_TRUE(data->open_block(1, 0).value()->read_batch(0, &batch).is_ok());
  const void* after[] = {batch.labels.data(), batch.dense_values.data(), batch.keys.data()};
  EXPECT_TRUE(std::equal(before, before + 3, after));
}

TEST(DatasetErrors, NameFileLineAndColumn) {
  const TestDirectory dir;
  auto lines = make_lines(300, 9);
  const std::string good = lines[299];
  const auto message = [&](const std::string& line) {
    lines[299] = line;
    const std::string path = dir.write("bad.tsv", text_of(lines));
    const Status status = failure(path);
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_EQ(status.message().rfind(path, 0), 0U) << status.message();
    return status.message().substr(path.size());
  };
  EXPECT_EQ(message("nan" + good.substr(1)), ":300:1: label is 'nan'; expected 0 or 1");
  EXPECT_EQ(message("7" + good.substr(1)), ":300:1: label is '7'; expected 0 or 1");
  EXPECT_EQ(message(""), ":300:1: blank line; every line must be a record, remove it");
  EXPECT_EQ(message(good + "\t0"),
            fmt::format(":300:{}: 41 fields; expected 40 between tabs: label, I1..I13, C1..C26",
                        good.size() + 2));
  const size_t last_tab = good.rfind('\t');
  EXPECT_EQ(message(good.substr(0, last_tab)),
            fmt::format(":300:{}: 39 fields; expected 40 between tabs: label, I1..I13, C1..C26",
                        last_tab + 1));
  EXPECT_EQ(message(good.substr(0, last_tab) + "\t123456789"),
            fmt::format(":300:{}: C26 is '123456789'; expected 1 to 8 hexadecimal digits, or "
                        "nothing when it is missing",
                        last_tab + 2));
  EXPECT_EQ(message("0\tnan" + std::string(38, '\t')).substr(0, 19), ":300:3: I1 is 'nan'");
}

TEST(DatasetErrors, LineNumbersOfGzipAndLaterFiles) {
  const TestDirectory dir;
  auto lines = make_lines(3000, 10);
  const std::string first = dir.write("a.tsv", text_of(lines));
  lines[2500] = "x";
  const std::string path = dir.write("b.gz", gzip_text(text_of(lines)));
  EXPECT_EQ(failure(path).message().rfind(path + ":2501:2: 1 fields", 0), 0U);
}

TEST(DatasetErrors, LongLineIsRefusedByTheScan) {
  const TestDirectory dir;
  const std::string line = make_lines(1, 11)[0];
  for (const bool gzip : {false, true}) {
    const std::string text = line + "\n" + std::string(kCriteoLineBytesMax + 1, '0') + "\n" + line;
    const std::string path = dir.write("a", gzip ? gzip_text(text) : text);
    EXPECT_EQ(failure(path).code(), Code::kInvalid);
    EXPECT_EQ(failure(path).message().rfind(path + ":2:1: line is longer than 1048576", 0), 0U)
        << failure(path).message();
  }
  const std::string path = dir.write("b", line + "\n" + std::string(kCriteoLineBytesMax, '0'));
  EXPECT_NE(failure(path).message().find(":2:1048577: 1 fields"), std::string::npos)
      << failure(path).message();
}

TEST(DatasetErrors, FilesThatCannotBeRead) {
  const TestDirectory dir;
  EXPECT_EQ(failure(dir.path("absent")).code(), Code::kNotFound);
  EXPECT_NE(failure(dir.path("")).message().find("is a directory"), std::string::npos);
  for (const std::string& empty : {dir.write("empty", ""), dir.write("empty.gz", gzip_text(""))}) {
    EXPECT_EQ(failure(empty).code(), Code::kInvalid);
    EXPECT_EQ(failure(empty).message().rfind(empty + ": holds no record", 0), 0U);
  }
  const std::string text = dir.write("text.gz", "0\t1\n");
  EXPECT_EQ(failure(text).code(), Code::kCorrupt);
  const std::string odd = dir.write("odd\xff", "0\t1\n");
  EXPECT_EQ(failure(odd).code(), Code::kInvalid);
  const std::string twice[] = {text, text};
  EXPECT_FALSE(Dataset::scan(twice, DataOptions(), 1).is_ok());
  EXPECT_FALSE(Dataset::scan({}, DataOptions(), 1).is_ok());
}

TEST(DatasetErrors, DamagedGzipIsNoticed) {
  const TestDirectory dir;
  const std::string whole = gzip_text(text_of(make_lines(500, 12)));
  for (size_t size = 3; size < whole.size(); size += whole.size() / 40) {
    const std::string path = dir.write("cut.gz", whole.substr(0, size));
    const Status status = failure(path);
    EXPECT_EQ(status.code(), Code::kCorrupt) << size;
    EXPECT_EQ(status.message(),
              path + fmt::format(": gzip data is damaged at byte {}: the file ends "
                                 "too early; copy or download it again",
                                 size));
  }
  for (size_t at = 20; at < whole.size(); at += whole.size() / 60) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    const Status status = failure(dir.write("flip.gz", flipped));
    EXPECT_EQ(status.code(), Code::kCorrupt) << at;
    EXPECT_NE(status.message().find("gzip data is damaged at byte"), std::string::npos);
  }
  EXPECT_EQ(failure(dir.write("tail.gz", whole + std::string("\0x", 2))).code(), Code::kCorrupt);
}

TEST(DatasetErrors, ChangedFilesAreRefused) {
  const TestDirectory dir;
  const auto lines = make_lines(200, 13);
  const std::string path = dir.write("a.tsv", text_of(lines));
  DataOptions options;
  options.batch_size = 10;
  const Geometry g = Dataset::scan({&path, 1}, options, 1).value();
  std::string text = text_of(lines);
  *std::find(text.begin(), text.end(), '\n') = ' ';  // one line less, the same size
  dir.write("a.tsv", text);
  const auto data = Dataset::open(g, options);
  EXPECT_EQ(data.status().code(), Code::kInvalid);
  EXPECT_NE(data.status().message().find("its content has changed"), std::string::npos);
  dir.write("a.tsv", text_of(lines));  // the same text, written later
  EXPECT_TRUE(Dataset::open(g, options).is_ok());
  dir.write("a.tsv", text + "x");
  const auto grown = Dataset::open(g, options);
  EXPECT_EQ(grown.status().code(), Code::kInvalid);
  EXPECT_NE(
      grown.status().message().find(fmt::format("{} bytes, was {}", text.size() + 1, text.size())),
      std::string::npos);
  dir.write("a.tsv", text);
  options.batch_size = 20;
  EXPECT_NE(Dataset::open(g, options).status().message().find("batch_size 20, was 10"),
            std::string::npos);
}

TEST(DatasetErrors, OptionsAreChecked) {
  const std::string path = "x";
  const auto message = [&](auto change) {
    DataOptions options;
    change(options);
    return Dataset::scan({&path, 1}, options, 1).status().message();
  };
  EXPECT_EQ(
      message([](DataOptions& o) { o.format = "criteo_tvs"; }),
      "data format 'criteo_tvs' is not known; allowed: criteo_tsv, feasign, multislot, libsvm, "
      "libffm, vw, csv, sentences, blocks, parquet, "
      "did you mean "
      "'criteo_tsv'?");
  EXPECT_EQ(message([](DataOptions& o) { o.dense_transform = "sqrt"; }),
            "dense_transform 'sqrt' is not known; allowed: log1p, none");
  EXPECT_EQ(message([](DataOptions& o) { o.batch_size = 0; }),
            "batch_size 0 is out of range; allowed: 1 to 16777216");
}

TEST(Globs, ExpandSorted) {
  const TestDirectory dir;
  for (const char* name : {"b.tsv", "a.tsv", "c.gz", "[x]"}) dir.write(name, "");
  const std::string patterns[] = {dir.path("c.gz"), dir.path("*.tsv"), dir.path("[x]")};
  const auto files = expand_globs(patterns);
  ASSERT_TRUE(files.is_ok());
  const std::vector<std::string> want = {dir.path("c.gz"), dir.path("a.tsv"), dir.path("b.tsv"),
                                         dir.path("[x]")};
  EXPECT_EQ(files.value(), want);
  const std::string none[] = {dir.path("*.csv")};
  EXPECT_EQ(expand_globs(none).status().code(), Code::kNotFound);
  EXPECT_EQ(expand_globs(none).status().message().rfind(none[0] + ": no file matches", 0), 0U);
}

}  // namespace
}  // namespace flux
