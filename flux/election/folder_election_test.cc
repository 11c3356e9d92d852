// FolderElection on a real folder: claims that meet, claims that die at every step, lost files.
#include "flux/election/folder_election.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "flux/election/leader_text.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

// Real files; `before` is called ahead of every operation with its number, counted from 0. Where it
// returns false the process is dead: this operation and all later ones do nothing.
class WatchedFiles final : public Files {
 public:
  std::function<bool(int)> before = [](int) { return true; };
  int operations = 0;

  Status write_atomic(const std::string&, std::string_view) override { return dead(); }
  Status write_synced(const std::string&, std::string_view) override { return dead(); }
  Status append_synced(const std::string&, std::string_view) override { return dead(); }
  Status sync_folder(const std::string&) override { return dead(); }
  Status create_exclusive(const std::string& path, std::string_view content) override {
    return alive() ? real_files().create_exclusive(path, content) : dead();
  }
  Result<std::string> read(const std::string& path, uint64_t bytes_max) override {
    return alive() ? real_files().read(path, bytes_max) : Result<std::string>(dead());
  }
  Status make_folders(const std::string& path) override {
    return alive() ? real_files().make_folders(path) : dead();
  }
  bool exists(const std::string& path) override { return alive() && real_files().exists(path); }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    return alive() ? real_files().list(folder) : Result<std::vector<std::string>>(dead());
  }
  Status remove_all(const std::string& path) override {
    return alive() ? real_files().remove_all(path) : dead();
  }

 private:
  bool alive() {
    alive_ = alive_ && before(operations++);
    return alive_;
  }
  static Status dead() { return error(Code::kIo, "dead"); }
  bool alive_ = true;
};

class FolderElectionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "election.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    output_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(output_); }

  std::unique_ptr<FolderElection> candidate(uint64_t id, Files* files = &real_files()) {
    auto made = std::make_unique<FolderElection>(files, output_, "ctr");
    made->announce({fmt::format("host.{}", id), id, fmt::format("tcp:h:{}", id), "http://h"});
    return made;
  }
  uint64_t claim(uint64_t id, uint64_t above = 0) {
    const auto term = candidate(id)->claim_term(above);
    EXPECT_TRUE(term.is_ok()) << term.status().message();
    return term.is_ok() ? term.value() : 0;
  }
  std::vector<std::string> terms() { return list_folder(output_ + "/terms"); }
  void reset() { std::filesystem::remove_all(output_ + "/terms"); }

  std::string output_;
};

TEST_F(FolderElectionTest, LeadsAtOnceAndIsReplacedByWhoClaimsNext) {
  const auto first = candidate(1), second = candidate(2);
  EXPECT_EQ(first->leader().status().code(), Code::kNotFound);
  EXPECT_TRUE(first->campaign(nullptr).is_ok());
  EXPECT_EQ(first->claim_term(0).value(), 1U);
  EXPECT_TRUE(first->still_mine(1).is_ok());
  EXPECT_TRUE(second->campaign(nullptr).is_ok());
  EXPECT_EQ(second->claim_term(0).value(), 2U);
  EXPECT_TRUE(second->still_mine(2).is_ok());
  const Status stale = first->still_mine(1);
  EXPECT_EQ(stale.code(), Code::kStale);
  EXPECT_EQ(stale.message(), "host.2 (term 2, tcp:h:2) runs job ctr now; this one (term 1) ends");
  const auto leader = first->leader();
  ASSERT_TRUE(leader.is_ok());
  EXPECT_EQ(leader.value().term, 2U);
  EXPECT_EQ(leader.value().who.name, "host.2");
  EXPECT_EQ(leader.value().who.address, "tcp:h:2");
  EXPECT_EQ(leader.value().who.http, "http://h");
  EXPECT_EQ(terms(), std::vector<std::string>{"000000000002"});
  const std::atomic<bool> stop{true};
  EXPECT_EQ(first->campaign(&stop).code(), Code::kCancelled);
}

TEST_F(FolderElectionTest, GoesAboveWhatManifestsAndServersKnow) {
  EXPECT_EQ(claim(1, 41), 42U);
  EXPECT_EQ(claim(2, 7), 43U);
  reset();
  EXPECT_EQ(claim(3, 43), 44U);
  EXPECT_EQ(candidate(4)->claim_term(kTermMax).status().code(), Code::kCorrupt);
  EXPECT_EQ(candidate(4)->claim_term(UINT64_MAX).status().code(), Code::kCorrupt);
}

TEST_F(FolderElectionTest, ClearedFoldersDoNotLetTwoShareATerm) {
  const auto first = candidate(1), second = candidate(2);
  EXPECT_EQ(first->claim_term(0).value(), 1U);
  reset();
  EXPECT_EQ(first->still_mine(1).code(), Code::kStale);
  EXPECT_EQ(second->claim_term(0).value(), 1U);  // nothing was known of the first
  EXPECT_TRUE(second->still_mine(1).is_ok());
  const Status stale = first->still_mine(1);
  EXPECT_EQ(stale.code(), Code::kStale);
  EXPECT_NE(stale.message().find("host.2 (term 1, tcp:h:2) claimed term 1"), std::string::npos);
}

TEST_F(FolderElectionTest, ForeignAndTornFilesAreNoTerms) {
  std::filesystem::create_directories(output_ + "/terms");
  for (const char* name : {"notes", "12", "00000000000x", "0000000000123", "000000000005.tmp"})
    ASSERT_TRUE(real_files().create_exclusive(output_ + "/terms/" + name, "x").is_ok());
  ASSERT_TRUE(real_files().create_exclusive(output_ + "/terms/000000000003", "{\"na").is_ok());
  const auto leader = candidate(1)->leader();
  ASSERT_TRUE(leader.is_ok());
  EXPECT_EQ(leader.value().term, 3U);
  EXPECT_EQ(leader.value().who.name, "");
  EXPECT_EQ(claim(1), 4U);
  EXPECT_EQ(terms().size(), 6U);  // theirs stay, 3 is replaced by 4
}

// What every earlier release wrote: files without content.
TEST_F(FolderElectionTest, GoesOnFromEmptyFiles) {
  std::filesystem::create_directories(output_ + "/terms");
  ASSERT_TRUE(real_files().create_exclusive(output_ + "/terms/000000000008", "").is_ok());
  EXPECT_EQ(claim(1), 9U);
}

TEST_F(FolderElectionTest, AClaimMayDieAtEveryStep) {
  int steps = 0;
  for (int die = 0; die <= steps; ++die) {
    reset();
    EXPECT_EQ(claim(1), 1U);
    EXPECT_EQ(claim(2), 2U);
    WatchedFiles files;
    files.before = [&](int operation) { return operation != die; };
    const auto died = candidate(3, &files)->claim_term(0);
    if (die == 0) {  // how many steps there are to die in
      WatchedFiles counting;
      reset();
      EXPECT_EQ(claim(2, 1), 2U);
      ASSERT_TRUE(candidate(3, &counting)->claim_term(0).is_ok());
      steps = counting.operations;
      ASSERT_GE(steps, 5);
      continue;
    }
    const uint64_t next = claim(4);
    EXPECT_GT(next, 2U) << die;
    if (died.is_ok()) {
      EXPECT_GT(next, died.value()) << die;
    }
    EXPECT_TRUE(candidate(4)->still_mine(next).is_ok()) << die;
    EXPECT_EQ(candidate(2)->still_mine(2).code(), Code::kStale) << die;
    EXPECT_EQ(terms(), std::vector<std::string>{term_name(next)}) << die;
  }
}

// Between any two steps of one claim, two others are made whole: the case in which the file of a
// term is free once more because it was removed.
TEST_F(FolderElectionTest, ClaimsThatMeetNeverShareATerm) {
  for (const int others : {1, 2, 3}) {
    int steps = 1;
    for (int at = 0; at < steps; ++at) {
      reset();
      EXPECT_EQ(claim(1), 1U);
      std::set<uint64_t> used = {1};
      WatchedFiles files;
      files.before = [&](int operation) {
        for (int i = 0; operation == at && i < others; ++i)
          EXPECT_TRUE(used.insert(claim(10 + static_cast<uint64_t>(i))).second) << at;
        return true;
      };
      const auto slow = candidate(2, &files);
      const auto term = slow->claim_term(0);
      ASSERT_TRUE(term.is_ok());
      steps = std::max(steps, files.operations);
      files.before = [](int) { return true; };
      EXPECT_TRUE(used.insert(term.value()).second) << others << " others before step " << at;
      // Exactly the highest may go on.
      const bool newest = term.value() == *used.rbegin();
      EXPECT_EQ(slow->still_mine(term.value()).is_ok(), newest) << at;
      EXPECT_EQ(
          candidate(10 + static_cast<uint64_t>(others) - 1)->still_mine(*used.rbegin()).is_ok(),
          !newest)
          << at;
    }
    EXPECT_GE(steps, 5);
  }
}

TEST_F(FolderElectionTest, ThreadsNeverShareATerm) {
  constexpr int kThreads = 4, kClaims = 25;
  std::vector<std::vector<uint64_t>> claimed(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto own = candidate(static_cast<uint64_t>(t) + 1);
      for (int i = 0; i < kClaims; ++i) {
        const auto term = own->claim_term(0);
        if (term.is_ok()) claimed[static_cast<size_t>(t)].push_back(term.value());
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& own : claimed) {
    EXPECT_EQ(own.size(), static_cast<size_t>(kClaims));
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    for (const uint64_t term : own) EXPECT_TRUE(all.insert(term).second) << term;
  }
}

}  // namespace
}  // namespace flux
