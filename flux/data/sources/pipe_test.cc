#include <cerrno>
#include <chrono>
#include <csignal>
#include <numeric>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "flux/data/dataset.h"
#include "flux/data/sources/kept_text.h"
#include "flux/data/sources/pipe_stream.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

using Words = std::vector<std::string>;

DataOptions piped(Words command, double timeout_s = 60, double max_gb = 1) {
  DataOptions options;
  options.format = "feasign";
  options.batch_size = 10;
  options.slots = {{"user", ""}};
  options.pipe = {std::move(command), timeout_s, max_gb};
  return options;
}

std::string lines_text(size_t lines) {
  std::string out;
  for (size_t i = 0; i < lines; ++i) out += fmt::format("{} user:{}\n", i % 2, i * 7919 % 4099);
  return out;
}

Result<std::unique_ptr<Dataset>> open_data(const std::string& path, const DataOptions& options) {
  FLUX_ASSIGN_OR_RETURN(const Geometry geometry, Dataset::scan({&path, 1}, options, 2));
  return Dataset::open(geometry, options);
}

std::vector<uint64_t> keys_of(const Dataset& data, const std::vector<uint32_t>& order) {
  std::vector<uint64_t> out;
  for (const uint32_t index : order) {
    const auto block = data.open_block(index, 0);
    EXPECT_TRUE(block.is_ok()) << block.status().message();
    if (!block.is_ok()) return out;
    Batch batch;
    for (uint32_t j = 0; j < data.geometry().batches_in(index); ++j) {
      EXPECT_TRUE(block.value()->read_batch(j, &batch).is_ok());
      out.insert(out.end(), batch.keys.begin(), batch.keys.end());
    }
  }
  return out;
}

// Nothing that was started here is left, not even as a zombie.
void expect_no_children() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Pipe, TextIsWhatTheCommandWrites) {
  const TestDirectory dir;
  const std::string text = lines_text(2000);
  const std::string plain = dir.write("a.txt", text), packed = dir.write("a.gz", gzip_text(text));
  DataOptions without = piped({});
  const auto want = open_data(plain, without);
  ASSERT_TRUE(want.is_ok()) << want.status().message();
  std::vector<uint32_t> order(want.value()->geometry().blocks.size());
  ASSERT_GT(order.size(), 10U);
  std::iota(order.begin(), order.end(), 0U);
  const auto keys = keys_of(*want.value(), order);
  for (const Words& command : {Words{"zcat", "-f"}, Words{"/bin/sh", "-c", "zcat -f"}})
    for (const std::string& path : {plain, packed}) {
      const auto data = open_data(path, piped(command));
      ASSERT_TRUE(data.is_ok()) << data.status().message();
      EXPECT_FALSE(data.value()->geometry().files[0].in_order);
      EXPECT_EQ(keys_of(*data.value(), order), keys);
    }
  expect_no_children();
}

TEST(Pipe, APassRunsTheCommandOnce) {
  const TestDirectory dir;
  const std::string path = dir.write("a.txt", lines_text(2000));
  const std::string runs = dir.path("runs");
  const auto data = open_data(path, piped({"/bin/sh", "-c", "echo run >> \"$0\"; exec cat", runs}));
  ASSERT_TRUE(data.is_ok()) << data.status().message();
  EXPECT_EQ(read_text(runs), "run\n");  // the scan
  std::vector<uint32_t> order(data.value()->geometry().blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  for (size_t i = 0; i + 3 < order.size(); i += 4) std::swap(order[i], order[i + 3]);
  EXPECT_EQ(keys_of(*data.value(), order).size(), 2000U);
  EXPECT_EQ(read_text(runs), "run\nrun\n");
  expect_no_children();
}

TEST(PipeErrors, NameTheCommandAndWhatItSaid) {
  const TestDirectory dir;
  const std::string path = dir.write("a.txt", lines_text(100));
  const auto refused = [&](const Words& command, double timeout_s = 60) {
    const Status status = open_data(path, piped(command, timeout_s)).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << status.message();
    return status.message();
  };
  EXPECT_EQ(refused({"no_such_command_x"}),
            path +
                ": data.pipe: the command 'no_such_command_x' is not found in PATH; install it, or "
                "give its path");
  EXPECT_EQ(refused({dir.write("script", "no program")}),
            path + ": data.pipe: '" + dir.path("script") +
                "' is no program that can be run; check the path and its mode");
  EXPECT_EQ(refused({"/bin/sh", "-c", "cat; echo one >&2; echo two >&2; exit 3"}),
            path +
                ": the command /bin/sh -c cat; echo one >&2; echo two >&2; exit 3 ended with exit "
                "code 3; it said:\n  one\n  two");
  EXPECT_EQ(
      refused({"/bin/sh", "-c", "cat; kill -TERM $$"}),
      path + ": the command /bin/sh -c cat; kill -TERM $$ was killed by signal 15 (Terminated)");
  EXPECT_EQ(
      refused({"/bin/sh", "-c", "echo oops >&2; sleep 1000 & wait"}, 0.05),
      path +
          ": the command /bin/sh -c echo oops >&2; sleep 1000 & wait wrote nothing for 0.05 s "
          "(data.pipe_timeout) and was killed; it said:\n  oops");
  EXPECT_EQ(refused({"/bin/sh", "-c", "cat; exec >&-; sleep 1000"}, 0.05),
            path +
                ": the command /bin/sh -c cat; exec >&-; sleep 1000 closed its output but did not "
                "end, and was killed");
  EXPECT_EQ(refused({"true"}), path + ": holds no record; remove it from the data or fill it");
  EXPECT_EQ(refused({""}), "data.pipe: its first word, the program, is empty");
  expect_no_children();
}

TEST(PipeErrors, OutputThatNeverEndsIsBounded) {
  const TestDirectory dir;
  const std::string path = dir.write("a.txt", lines_text(100));
  const Status status = open_data(path, piped({"yes", "1 user:7"}, 60, 0.002)).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(), path +
                                  ": the command yes 1 user:7 wrote more than 0.002 GB of text "
                                  "(data.pipe_max_gb) and was killed; does it ever end?");
  // As much as is allowed.
  const std::string text = lines_text(1000);
  const auto size = static_cast<double>(text.size());
  const std::string whole = dir.write("b.txt", text);
  EXPECT_TRUE(open_data(whole, piped({"cat"}, 60, (size + 0.5) / 1e9)).is_ok());
  EXPECT_FALSE(open_data(whole, piped({"cat"}, 60, (size - 0.5) / 1e9)).is_ok());
  expect_no_children();
}

TEST(PipeErrors, MuchOnStandardErrorIsNoHarm) {
  const TestDirectory dir;
  const std::string path = dir.write("a.txt", lines_text(100));
  const auto data = open_data(
      path, piped({"/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x >&2; exec cat"}));
  ASSERT_TRUE(data.is_ok()) << data.status().message();
  EXPECT_EQ(data.value()->geometry().records(), 100U);
}

TEST(PipeErrors, OutputThatDiffersIsStale) {
  const TestDirectory dir;
  const std::string path = dir.write("a.txt", lines_text(2000));
  const std::string runs = dir.write("runs", "");
  // The same number of bytes and lines, other keys in the second run.
  const Words command = {"/bin/sh", "-c",
                         "echo >> \"$0\"; n=$(wc -l < \"$0\"); sed \"s/^./$((n % 2))/\"", runs};
  const auto data = open_data(path, piped(command));
  ASSERT_TRUE(data.is_ok()) << data.status().message();
  const auto block = data.value()->open_block(0, 0);
  ASSERT_EQ(block.status().code(), Code::kInvalid);
  EXPECT_TRUE(block.status().message().starts_with(path + ": the output of /bin/sh -c "));
  EXPECT_NE(block.status().message().find("the text must be the same whenever it is read"),
            std::string::npos);
}

TEST(PipeErrors, AnotherCommandIsAnotherPass) {
  const TestDirectory dir;
  const std::string path = dir.write("a.txt", lines_text(100));
  const auto geometry = Dataset::scan({&path, 1}, piped({"cat"}), 1);
  ASSERT_TRUE(geometry.is_ok());
  const auto again = Geometry::from_json(geometry.value().to_json());
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  EXPECT_EQ(again.value().to_json(), geometry.value().to_json());
  const auto data = Dataset::open(again.value(), piped({"cat", "-u"}));
  EXPECT_EQ(data.status().code(), Code::kInvalid);
  EXPECT_NE(data.status().message().find(R"(pipe ["cat","-u"], was ["cat"])"), std::string::npos)
      << data.status().message();
}

TEST(PipeErrors, OnlyForLines) {
  DataOptions options = piped({"cat"});
  options.format = "blocks";
  const std::string path = "a";
  EXPECT_EQ(Dataset::scan({&path, 1}, options, 1).status().message(),
            "data.pipe makes text, which format blocks is not; leave it out");
}

// A stream over text in memory, which counts how often it was opened.
struct Opened {
  std::string text;
  uint64_t times = 0, bytes = 0;
};
class MemoryStream final : public TextStream {
 public:
  explicit MemoryStream(Opened* opened) : opened_(opened) {}
  Result<size_t> read(char* out, size_t size) override {
    const size_t n = opened_->text.copy(out, size, at_);
    at_ += n;
    opened_->bytes += n;
    return n;
  }
  uint64_t text_offset() const override { return at_; }
  uint64_t file_offset() const override { return at_; }

 private:
  Opened* const opened_;
  size_t at_ = 0;
};
class MemoryOpener final : public StreamOpener {
 public:
  explicit MemoryOpener(Opened* opened) : opened_(opened) {}
  uint64_t nearest(uint64_t /*begin*/) const override { return 0; }
  Result<std::unique_ptr<TextStream>> open(uint64_t /*nearest*/) const override {
    ++opened_->times;
    return std::unique_ptr<TextStream>(std::make_unique<MemoryStream>(opened_));
  }

 private:
  Opened* const opened_;
};

TEST(KeptText, UnpacksOnceInOrderAndAlmostInOrder) {
  constexpr size_t kBlock = 1 << 20, kBlocks = 80;
  Opened opened;
  for (size_t i = 0; i < kBlocks; ++i)
    opened.text += std::string(kBlock, static_cast<char>('0' + i));
  std::vector<uint64_t> cuts;
  for (size_t i = 0; i < kBlocks; ++i) cuts.push_back(i * kBlock);
  KeptText text("a", std::make_unique<MemoryOpener>(&opened), cuts);
  const auto read = [&](size_t block) {
    std::string out(kBlock, '\0');
    const Status status = text.read(block * kBlock, kBlock, out.data());
    ASSERT_TRUE(status.is_ok()) << status.message();
    EXPECT_EQ(out, opened.text.substr(block * kBlock, kBlock));
  };
  for (size_t i = 0; i + 20 <= kBlocks; i += 20)  // backwards in groups of 20
    for (size_t j = 0; j < 20; ++j) read(i + 19 - j);
  EXPECT_EQ(opened.times, 1U);
  EXPECT_EQ(opened.bytes, opened.text.size());
  read(0);  // the next epoch
  EXPECT_EQ(opened.times, 2U);
  read(70);  // far: what lies further back than is kept is given up
  read(69);
  read(40);
  EXPECT_EQ(opened.times, 2U);
  read(20);
  EXPECT_EQ(opened.times, 3U);
  text.drop();
  read(21);
  EXPECT_EQ(opened.times, 4U);
  char beyond[2];
  EXPECT_EQ(text.read(opened.text.size() - 1, 2, beyond).code(), Code::kInvalid);
}

}  // namespace
}  // namespace flux
