#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>
#include <zstd.h>

#include "flux/base/random.h"
#include "flux/data/dataset.h"
#include "flux/data/sources/text_file.h"
#include "flux/data/sources/zstd_stream.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

// Lines that compress about as data does.
std::string make_text(size_t lines, uint64_t seed) {
  Random r(seed);
  std::string out;
  for (size_t i = 0; i < lines; ++i)
    out += fmt::format("{} user:{} item:{} price:{:.3f}\n", r.below(2), r.below(5000),
                       r.below(90000), r.exponential());
  return out;
}

// One frame, as a stream writes it (without the size of its text) or as a whole.
std::string zstd_text(std::string_view text, bool says_size = true, int window_log = 0,
                      bool check_sum = true) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, says_size ? 1 : 0);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, check_sum ? 1 : 0);
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string out(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_inBuffer from{text.data(), text.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  if (says_size) ZSTD_CCtx_setPledgedSrcSize(context, text.size());
  ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush);
  EXPECT_EQ(ZSTD_compressStream2(context, &to, &from, ZSTD_e_end), 0U);
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

std::string le32(uint32_t value) {
  std::string out(4, '\0');
  std::memcpy(out.data(), &value, 4);
  return out;
}

std::string skippable(const std::string& payload, uint32_t number = 3) {
  return le32(0x184D2A50 + number) + le32(static_cast<uint32_t>(payload.size())) + payload;
}

// Frames of `size` bytes of text each.
std::vector<std::string> frames_of(std::string_view text, size_t size, bool says_size) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size(); at += size)
    out.push_back(zstd_text(text.substr(at, size), says_size));
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::string());
}

// With the table of the seekable format.
std::string seekable(const std::vector<std::string>& frames, size_t text_each, size_t text_in_all) {
  std::string table;
  for (size_t i = 0; i < frames.size(); ++i)
    table += le32(static_cast<uint32_t>(frames[i].size())) +
             le32(static_cast<uint32_t>(std::min(text_each, text_in_all - i * text_each)));
  return joined(frames) + skippable(table + le32(static_cast<uint32_t>(frames.size())) +
                                        std::string(1, '\0') + le32(0x8F92EAB1),
                                    14);
}

ReadFile open_file(const std::string& path) {
  auto file = ReadFile::open(path);
  FLUX_CHECK(file.is_ok(), "{}", file.status().message());
  return std::move(file).value();
}

std::string read_all(const std::string& path, size_t at_once) {
  const ReadFile file = open_file(path);
  ZstdStream stream(file);
  std::string out, piece(at_once, '\0');
  for (size_t n = at_once; n == at_once;) {
    const auto got = stream.read(piece.data(), at_once);
    FLUX_CHECK(got.is_ok(), "{}", got.status().message());
    n = got.value();
    out.append(piece, 0, n);
  }
  EXPECT_EQ(stream.text_offset(), out.size());
  EXPECT_EQ(stream.file_offset(), file.size());
  return out;
}

DataOptions feasign() {
  DataOptions options;
  options.format = "feasign";
  options.batch_size = 20;
  options.slots = {{"user", ""}, {"item", ""}};
  options.dense = {"price"};
  return options;
}

TEST(Zstd, StreamReadsEveryKindOfFile) {
  const TestDirectory dir;
  const std::string text = make_text(20000, 1);
  const auto frames = frames_of(text, 100'000, false);
  const std::string files[] = {
      zstd_text(text),
      zstd_text(text, false),
      joined(frames),
      skippable("note") + zstd_text("") + zstd_text(text) + skippable("") + zstd_text(""),
      seekable(frames, 100'000, text.size()),
      zstd_text(text, false, kZstdWindowLogMax),
  };
  for (const std::string& bytes : files)
    for (const size_t at_once : {size_t{777}, size_t{1} << 17, text.size() + 1})
      EXPECT_EQ(read_all(dir.write("a", bytes), at_once), text);
}

TEST(Zstd, PointsAreWhereFramesBegin) {
  const TestDirectory dir;
  const std::string text = make_text(20000, 2);
  const size_t each = 50'000;
  for (const bool table : {false, true}) {
    const auto frames = frames_of(text, each, !table);
    const ReadFile file = open_file(dir.write(
        "a", table ? seekable(frames, each, text.size()) : skippable("x") + joined(frames)));
    const auto points = find_zstd_points(file, 1);
    ASSERT_EQ(points.size(), frames.size());
    for (const ZstdPoint& point : points) {
      ZstdStream stream(file, point);
      std::string some(1000, '\0');
      const auto got = stream.read(some.data(), some.size());
      ASSERT_TRUE(got.is_ok()) << got.status().message();
      EXPECT_EQ(some.substr(0, got.value()), text.substr(point.text, 1000));
    }
    EXPECT_EQ(find_zstd_points(file, each * 4).size(), (frames.size() + 3) / 4);
  }
  // Frames that do not say how much they hold, and a table that does not fit.
  EXPECT_EQ(
      find_zstd_points(open_file(dir.write("b", joined(frames_of(text, each, false)))), 1).size(),
      1U);
  auto frames = frames_of(text, each, false);
  EXPECT_EQ(
      find_zstd_points(open_file(dir.write("c", "x" + seekable(frames, each, text.size()))), 1)
          .size(),
      1U);
}

TEST(Zstd, InOrderMeansThatNoEntryIsNear) {
  const TestDirectory dir;
  const std::string text(kNearBytes + (8 << 20), 'x');
  const auto in_order = [&](const std::string& bytes, Packing packing) {
    return reads_in_order(open_file(dir.write("a", bytes)), packing, text.size());
  };
  EXPECT_TRUE(in_order(zstd_text(text), Packing::kZstd));
  EXPECT_TRUE(in_order(joined(frames_of(text, 1 << 20, false)), Packing::kZstd));
  EXPECT_FALSE(in_order(joined(frames_of(text, 1 << 20, true)), Packing::kZstd));
  EXPECT_FALSE(in_order(text, Packing::kPlain));
  EXPECT_FALSE(in_order(text, Packing::kGzip));
  EXPECT_TRUE(in_order(text, Packing::kPipe));
}

// Every block of a dataset, read in a given order by some threads, against the same of plain text.
void expect_same_blocks(const Dataset& want, const Dataset& got, std::vector<uint32_t> order,
                        unsigned threads) {
  std::atomic<size_t> next = 0;
  std::atomic<uint32_t> wrong = 0;
  const auto work = [&] {
    for (size_t i = next++; i < order.size(); i = next++) {
      const auto a = want.open_block(order[i], 3), b = got.open_block(order[i], 3);
      if (!a.is_ok() || !b.is_ok()) {
        ++wrong;
        continue;
      }
      Batch x, y;
      for (uint32_t j = 0; j < want.geometry().batches_in(order[i]); ++j)
        if (!a.value()->read_batch(j, &x).is_ok() || !b.value()->read_batch(j, &y).is_ok() ||
            x.keys != y.keys || x.labels != y.labels || x.dense_values != y.dense_values)
          ++wrong;
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& one : others) one.join();
  EXPECT_EQ(wrong, 0U);
}

TEST(Zstd, InAnyOrderEqualsPlain) {
  const TestDirectory dir;
  const std::string text = make_text(30000, 3);
  const DataOptions options = feasign();
  const auto open = [&](const std::string& path) {
    auto geometry = Dataset::scan({&path, 1}, options, 2);
    FLUX_CHECK(geometry.is_ok(), "{}", geometry.status().message());
    auto data = Dataset::open(geometry.value(), options);
    FLUX_CHECK(data.is_ok(), "{}", data.status().message());
    return std::move(data).value();
  };
  const auto plain = open(dir.write("a.txt", text));
  std::vector<uint32_t> order(plain->geometry().blocks.size());
  ASSERT_GT(order.size(), 40U);
  std::iota(order.begin(), order.end(), 0U);
  std::vector<uint32_t> mixed = order, backwards(order.rbegin(), order.rend());
  Random random(4);
  for (size_t i = mixed.size(); i > 1; --i) std::swap(mixed[i - 1], mixed[random.below(i)]);
  const std::string packed[] = {zstd_text(text), joined(frames_of(text, 300'000, true)),
                                seekable(frames_of(text, 300'000, false), 300'000, text.size())};
  for (const std::string& bytes : packed) {
    const auto data = open(dir.write("a.zst", bytes));
    EXPECT_EQ(data->geometry().files[0].packing, Packing::kZstd);
    for (const auto& one : {order, mixed, backwards})
      for (const unsigned threads : {1U, 4U}) expect_same_blocks(*plain, *data, one, threads);
  }
}

Status scan_status(const std::string& path) {
  return Dataset::scan({&path, 1}, feasign(), 1).status();
}

TEST(ZstdErrors, DamageIsNamedByByte) {
  const TestDirectory dir;
  const std::string whole = zstd_text(make_text(2000, 5));
  for (size_t size = 1; size < whole.size(); size += 1 + size / 7) {
    const std::string path = dir.write("cut.zst", whole.substr(0, size));
    const Status status = scan_status(path);
    ASSERT_EQ(status.code(), Code::kCorrupt) << size;
    const char* says = size < 4 ? ": is not zstd data, as its name says: it has no zstd head"
                                : ": zstd data is damaged at byte ";
    EXPECT_TRUE(status.message().starts_with(path + says)) << status.message();
    const std::string whole_message =
        path + fmt::format(
                   ": zstd data is damaged at byte {}: the file ends too early; copy or "
                   "download it again",
                   size);
    EXPECT_TRUE(size < 4 || status.message() == whole_message) << status.message();
  }
  const std::string good = dir.write("good.zst", whole);
  const auto scanned = Dataset::scan({&good, 1}, feasign(), 1);
  ASSERT_TRUE(scanned.is_ok()) << scanned.status().message();
  const uint64_t content = scanned.value().files[0].content;
  for (size_t at = 4; at < whole.size(); at += 1 + at / 5) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const std::string path = dir.write("flipped.zst", bytes);
    const auto found = Dataset::scan({&path, 1}, feasign(), 1);
    // One bit of the head means nothing.
    EXPECT_TRUE(!found.is_ok() || found.value().files[0].content == content) << at;
  }
  for (const int at : {5, 6, 7}) {  // window, and how much text it holds
    std::string bytes = whole;
    bytes[static_cast<size_t>(at)] ^= 1;
    EXPECT_FALSE(scan_status(dir.write("head.zst", bytes)).is_ok()) << at;
  }
  const std::string behind = dir.write("behind.zst", whole + "garbage");
  EXPECT_NE(scan_status(behind).message().find("no zstd frame begins here"), std::string::npos);
}

TEST(ZstdErrors, LargeWindowsAreRefused) {
  const TestDirectory dir;
  const std::string path =
      dir.write("a.zst", zstd_text(make_text(3000, 6), false, kZstdWindowLogMax + 1));
  EXPECT_EQ(scan_status(path).code(), Code::kInvalid);
  EXPECT_EQ(scan_status(path).message(),
            path +
                ": its zstd window is larger than 128.0 MiB, the most that is read; pack it anew "
                "with a smaller one (zstd --long=27 or less)");
}

TEST(ZstdErrors, TextThatChangedIsRefused) {
  const TestDirectory dir;
  const std::string text = make_text(3000, 7);
  const std::string path = dir.write("a.zst", zstd_text(text, true, 0, false));
  auto geometry = Dataset::scan({&path, 1}, feasign(), 1);
  ASSERT_TRUE(geometry.is_ok());
  for (DataBlock& block : geometry.value().blocks) ++block.content;
  const auto data = Dataset::open(geometry.value(), feasign());
  ASSERT_TRUE(data.is_ok()) << data.status().message();
  const auto block = data.value()->open_block(1, 0);
  EXPECT_EQ(block.status().code(), Code::kInvalid);
  EXPECT_NE(block.status().message().find("are not those that the scan found"), std::string::npos);
}

}  // namespace
}  // namespace flux
