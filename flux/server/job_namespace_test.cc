// Jobs of a server process and the coordinator's verbs, through the port that a coordinator uses.
#include "flux/server/job_namespace.h"

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "flux/checkpoint/store.h"
#include "flux/server/local_admin.h"
#include "flux/server/test_push.h"

namespace flux {
namespace {

constexpr uint64_t kMark = 0xE5ULL << 56;  // above the record number of a key made from one

// Work runs when the test says so, and its end is told later still.
class ManualOffload final : public Offload {
 public:
  void run(std::function<void()> work, std::function<void()> done) override {
    calls_.emplace_back(std::move(work), std::move(done));
  }
  void run_all() {
    for (; !calls_.empty(); calls_.pop_front()) {
      calls_.front().first();
      calls_.front().second();
    }
  }

 private:
  std::deque<std::pair<std::function<void()>, std::function<void()>>> calls_;
};

class JobsTest : public testing::Test {
 protected:
  JobsTest() {
    std::string name = testing::TempDir() + "flux_jobs_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~JobsTest() override { std::filesystem::remove_all(folder_); }

  static Result<std::shared_ptr<Server>> build(const OpenJob& job) {
    if (job.name == "bad") return invalid("job.yaml: no such thing");
    ServerOptions o = test_options();
    o.incarnation = job.incarnation;
    o.epoch = {job.term, 1};
    o.places = job.places;
    return Server::create(o);
  }
  static std::vector<ShardId> every_shard() { return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; }
  static OpenJob job(const std::string& name, uint64_t incarnation, uint64_t term = 1) {
    return {name, {}, incarnation, term, 0, alone(every_shard(), {term, 1})};
  }
  // A call about every shard that is served.
  AdminCall of(uint64_t incarnation, uint64_t term = 1) {
    const auto found = jobs_.find(incarnation);
    AdminCall call;
    if (found.is_ok()) call = found.value()->server()->primaries();
    call.incarnation = incarnation;
    call.term = term;
    return call;
  }
  static AdminCall naming(uint64_t incarnation, uint64_t term, const std::vector<ShardId>& shards) {
    return {incarnation, term, shards, std::vector<ShardEpoch>(shards.size(), {term, 1})};
  }
  // Calls a verb and waits for its end.
  template <typename Outcome = Status, typename Verb>
  Outcome call(const Verb& verb) {
    std::optional<Outcome> got;
    const std::function<void(Outcome)> done = [&](Outcome o) { got.emplace(std::move(o)); };
    verb(done);
    EXPECT_FALSE(got.has_value()) << "nothing runs inside the call";
    offload_.run_all();
    return std::move(got).value();
  }
  Status open(const OpenJob& j) {
    return call([&](const auto& done) { admin_.open_job(j, done); });
  }
  Status open_pass(uint64_t incarnation, uint64_t geometry = kGeometry) {
    return call([&](const auto& done) { admin_.open_pass(of(incarnation), 0, geometry, done); });
  }
  Result<JobTotals> totals(uint64_t incarnation, std::vector<ExpectedCount> expected,
                           uint64_t term = 1) {
    return call<Result<JobTotals>>(
        [&](const auto& done) { admin_.totals(of(incarnation, term), true, expected, done); });
  }
  Result<std::vector<uint32_t>> marked(uint64_t incarnation, bool any, uint64_t term = 1) {
    return call<Result<std::vector<uint32_t>>>([&](const auto& done) {
      admin_.marked(of(incarnation, term), {0, 0, 0, 0}, 1, any, done);
    });
  }
  std::vector<Answer> push(uint64_t incarnation, uint32_t i) {
    TestPush p(i, test_batch(i), 100, *jobs_.find(incarnation).value()->server());
    p.request.claim.incarnation = incarnation;
    std::vector<Answer> answers;
    jobs_.push(p.request, [&](const PushReply& reply) {
      for (const ShardAnswer& a : reply.answers) answers.push_back(a.answer);
    });
    return answers;
  }
  LoadJob load_of(const std::vector<SavedShard>& saved, uint64_t number) const {
    LoadJob load{folder_, number, {}, 0};
    for (const SavedShard& s : saved)
      load.shards.push_back({s.shard, s.name, s.bytes, s.hash, s.op, s.stream_hash});
    return load;
  }

  std::string folder_;
  ManualOffload offload_;
  ServerJobs jobs_{build};
  LocalAdmin admin_{&jobs_, &offload_};
};

TEST_F(JobsTest, TwoJobsDoNotKnowEachOther) {
  ASSERT_TRUE(open(job("a", 1)).is_ok());
  ASSERT_TRUE(open(job("b", 2)).is_ok());
  ASSERT_TRUE(open_pass(1).is_ok());
  ASSERT_TRUE(open_pass(2).is_ok());
  EXPECT_TRUE(all_are(push(1, 0), 11, Answer::kApplied));
  EXPECT_EQ(marked(1, false).value(), std::vector<uint32_t>{1});
  EXPECT_EQ(marked(2, true).value(), std::vector<uint32_t>{0});
  EXPECT_EQ(totals(2, {}).value().rows, 0U);
  EXPECT_EQ(totals(1, {}).value().pushes, 1U);
  EXPECT_EQ(jobs_.all().size(), 2U);
}

TEST_F(JobsTest, OpenedAgainReplacedClosed) {
  ASSERT_TRUE(open(job("a", 1)).is_ok());
  ASSERT_TRUE(open_pass(1).is_ok());
  EXPECT_TRUE(all_are(push(1, 0), 11, Answer::kApplied));
  ASSERT_TRUE(open(job("a", 1)).is_ok()) << "the answer was lost, so it was asked again";
  EXPECT_GT(totals(1, {}).value().rows, 0U);
  EXPECT_EQ(open(job("b", 1)).code(), Code::kStale) << "an incarnation belongs to one job";
  EXPECT_EQ(open(job("a", 7)).code(), Code::kStale) << "same term, another life";
  ASSERT_TRUE(open(job("a", 2, 2)).is_ok());
  EXPECT_EQ(open(job("a", 3, 1)).code(), Code::kStale) << "a coordinator of the past";
  EXPECT_EQ(totals(1, {}).status().code(), Code::kStale);
  EXPECT_EQ(totals(2, {}, 2).value().rows, 0U);
  EXPECT_EQ(open(job("bad", 9)).message(), "job.yaml: no such thing");
  // Requests of the old life.
  TestPush old(0, test_batch(0), 10, *jobs_.find(2).value()->server());
  old.request.claim.incarnation = 1;
  std::vector<Answer> answers;
  jobs_.push(old.request, [&](const PushReply& reply) {
    for (const ShardAnswer& a : reply.answers) answers.push_back(a.answer);
  });
  EXPECT_TRUE(all_are(answers, 11, Answer::kStaleIncarnation));
  Status status;
  jobs_.pull({1, {}, {}, {}, nullptr}, [&](const PullReply& reply) { status = reply.status; });
  EXPECT_EQ(status.code(), Code::kStale);
  EXPECT_EQ(call([&](const auto& done) { admin_.close_job(of(2, 1), done); }).code(), Code::kStale);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(call([&](const auto& done) { admin_.close_job(of(2, 2), done); }).is_ok());
  EXPECT_TRUE(jobs_.all().empty());
}

TEST_F(JobsTest, ClosingAnswersThoseWhoWait) {
  ASSERT_TRUE(open(job("a", 1)).is_ok());
  ASSERT_TRUE(open_pass(1).is_ok());
  TestPush p(0, test_batch(0), 10, *jobs_.find(1).value()->server());
  p.request.claim.incarnation = 1;
  const SyncStep step{1, 0, {test_batch(0), test_batch(4)}, 20};
  p.request.step = &step;
  std::vector<Answer> answers;
  jobs_.push(p.request, [&](const PushReply& reply) {
    for (const ShardAnswer& a : reply.answers) answers.push_back(a.answer);
  });
  EXPECT_TRUE(answers.empty());
  jobs_.close(1);
  EXPECT_TRUE(all_are(answers, 11, Answer::kNotServing));
}

TEST_F(JobsTest, VoidAndMarkReachTheServer) {
  ASSERT_TRUE(open(job("a", 1)).is_ok());
  ASSERT_TRUE(open_pass(1).is_ok());
  EXPECT_EQ(open_pass(1, kGeometry + 1).code(), Code::kStale);
  EXPECT_EQ(open_pass(1, 0).code(), Code::kInvalid);
  const auto mark = [&](Verdict verdict) {
    return call(
        [&](const auto& done) { admin_.mark(of(1), kGeometry, {test_batch(1)}, verdict, done); });
  };
  EXPECT_TRUE(mark(Verdict::kSkipped).is_ok());
  EXPECT_EQ(mark(Verdict::kLost).code(), Code::kStale);
  EXPECT_EQ(marked(1, false).value(), std::vector<uint32_t>{0b10});
  const auto gone = [&](uint64_t round) {
    return call(
        [&](const auto& done) { admin_.void_member(of(1), round, test_batch(0).block, done); });
  };
  EXPECT_TRUE(gone(1).is_ok());
  EXPECT_EQ(gone(0).code(), Code::kInvalid);
  EXPECT_EQ(
      jobs_.find(1).value()->marked(of(1), {}, kBlocksPerSectionMax + 1, false).status().code(),
      Code::kInvalid);
  EXPECT_TRUE(call([&](const auto& done) { admin_.close_below(of(1), 1, done); }).is_ok());
  EXPECT_EQ(marked(1, false).value(), std::vector<uint32_t>{~0U});
}

TEST_F(JobsTest, SavesAndLoads) {
  ASSERT_TRUE(open(job("a", 1)).is_ok());
  ASSERT_TRUE(open_pass(1).is_ok());
  for (uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(all_are(push(1, i), 11, Answer::kApplied));
  const uint64_t number = CheckpointStore(folder_).begin().value();
  const auto saved = call<Result<std::vector<SavedShard>>>(
      [&](const auto& done) { admin_.save(of(1), folder_, number, 0, done); });
  ASSERT_TRUE(saved.is_ok()) << saved.status().message();
  const uint64_t content = totals(1, {}).value().content_hash;
  // A second life on two servers: nothing is served until it is loaded and assigned.
  ServerJobs other{build};
  OpenJob empty = job("a", 2, 2);
  empty.places = {};
  ASSERT_TRUE(open(empty).is_ok());
  ASSERT_TRUE(other.open(empty).is_ok());
  const std::vector<ShardId> left = {0, 3, 6, 9}, right = {1, 2, 4, 5, 7, 8, 10};
  const LoadJob all = load_of(saved.value(), number);
  LoadJob some = all, rest = all;
  const auto is_left = [&](const ShardToLoad& s) {
    return std::binary_search(left.begin(), left.end(), s.shard);
  };
  std::erase_if(some.shards, [&](const ShardToLoad& s) { return !is_left(s); });
  std::erase_if(rest.shards, is_left);
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(
        call([&](const auto& done) { admin_.load(naming(2, 2, left), some, done); }).is_ok())
        << "asked twice";
  ASSERT_TRUE(other.find(2).value()->load(naming(2, 2, right), rest).is_ok());
  EXPECT_TRUE(of(2).shards.empty()) << "loaded, not assigned";
  const auto states = call<Result<std::vector<ShardState>>>([&](const auto& done) {
    admin_.assign({2, 2, {}, {}}, alone(left, {2, 1}), done);
  });
  ASSERT_EQ(states.value().size(), 4U);
  for (const ShardState& state : states.value()) {
    EXPECT_EQ(state.role, ReplicaRole::kPrimary);
    EXPECT_TRUE(state.complete);
  }
  ASSERT_TRUE(other.find(2).value()->assign(alone(right, {2, 1})).is_ok());
  EXPECT_EQ(totals(2, {}, 2).value().content_hash +
                job_totals(*other.find(2).value()->server(), true, {}).content_hash,
            content);
  EXPECT_EQ(marked(2, false, 2).value(), std::vector<uint32_t>{0b111});
  EXPECT_EQ(call([&](const auto& done) { admin_.load(naming(2, 2, left), some, done); }).code(),
            Code::kStale)
      << "what is served is not loaded over";
}

TEST_F(JobsTest, TermsAndHoldings) {
  const auto holdings = [&](const std::string& name, uint64_t term) {
    return call<Result<Holdings>>([&](const auto& done) { admin_.holdings(name, term, done); });
  };
  EXPECT_EQ(holdings("a", 3).value().incarnation, 0U) << "nothing is here";
  EXPECT_EQ(open(job("a", 1, 2)).code(), Code::kStale) << "a later coordinator has asked";
  ASSERT_TRUE(open(job("a", 1, 3)).is_ok());
  AdminCall call3 = of(1, 3);
  ASSERT_TRUE(call([&](const auto& done) { admin_.open_pass(call3, 4, 77, done); }).is_ok());
  const Holdings held = holdings("a", 5).value();
  EXPECT_EQ(held.incarnation, 1U);
  EXPECT_EQ(held.term, 5U);
  EXPECT_EQ(held.shards.size(), 11U);
  EXPECT_EQ(held.shards[4].op, 1U);
  EXPECT_EQ(held.shards[4].epoch, (ShardEpoch{3, 1}));
  EXPECT_EQ(held.passes, (std::map<uint32_t, uint64_t>{{4, 77}}));
  EXPECT_EQ(totals(1, {}, 3).status().code(), Code::kStale) << "fenced off";
  EXPECT_TRUE(totals(1, {}, 5).is_ok()) << "epochs stay when a coordinator takes over";
  EXPECT_EQ(holdings("a", 4).status().code(), Code::kStale);
  EXPECT_TRUE(holdings("b", 1).is_ok()) << "another job";
  AdminCall wrong = of(1, 5);
  wrong.epochs[3].n += 1;
  EXPECT_EQ(jobs_.find(1).value()->totals(wrong, false, {}).status().code(), Code::kStale);
}

TEST_F(JobsTest, BadCheckpointsAreNamed) {
  ASSERT_TRUE(open(job("a", 1)).is_ok());
  ASSERT_TRUE(open_pass(1).is_ok());
  push(1, 0);
  const uint64_t number = CheckpointStore(folder_).begin().value();
  const auto saved = jobs_.find(1).value()->save(of(1), folder_, number, 0);
  const LoadJob good = load_of(saved.value(), number);
  uint64_t life = 10;
  const auto outcome = [&](const std::function<void(LoadJob*)>& change) {
    LoadJob load = good;
    change(&load);
    OpenJob empty = job("a", life, life);
    empty.places = {};
    EXPECT_TRUE(jobs_.open(empty).is_ok());
    const AdminCall call = naming(life, life, every_shard());
    return jobs_.find(life++).value()->load(call, load);
  };
  const std::string file = (std::filesystem::path(folder_) / "000001" / good.shards[4].name);
  EXPECT_EQ(outcome([](LoadJob*) {}).code(), Code::kOk);
  EXPECT_EQ(outcome([](LoadJob* l) { l->shards.pop_back(); }).code(), Code::kInvalid);
  EXPECT_EQ(outcome([](LoadJob* l) { l->shards[4].hash ^= 1; }).code(), Code::kCorrupt);
  EXPECT_EQ(outcome([](LoadJob* l) { l->shards[4].bytes += 1; }).code(), Code::kCorrupt);
  EXPECT_EQ(outcome([](LoadJob* l) { l->shards[4].name = "../000001/x"; }).code(), Code::kInvalid);
  const Status swapped = outcome([](LoadJob* l) {
    std::swap(l->shards[4], l->shards[5]);
    std::swap(l->shards[4].shard, l->shards[5].shard);
  });
  EXPECT_NE(swapped.message().find("shard 5 where 4 is expected"), std::string::npos)
      << swapped.message();
  std::fstream(file, std::ios::in | std::ios::out).seekp(40).put('!');
  const Status flipped = outcome([](LoadJob*) {});
  EXPECT_EQ(flipped.code(), Code::kCorrupt);
  EXPECT_NE(flipped.message().find(file), std::string::npos) << flipped.message();
  std::filesystem::remove(file);
  EXPECT_NE(outcome([](LoadJob*) {}).message().find(file), std::string::npos);
}

// A loss and a double, counted by key against a plain map.
TEST_F(JobsTest, CountsByKey) {
  ASSERT_TRUE(open(job("a", 1)).is_ok());
  ASSERT_TRUE(open_pass(1).is_ok());
  const std::vector<ExpectedCount> expected = {{10, 2}, {5, 1}};  // 0..4: 3, 5..9: 2
  std::vector<uint32_t> found = {3, 3, 1, 3, 5, 2, 2, 0, 2, 2};   // 2 lost twice, 4 doubled twice
  uint32_t i = 0;
  for (uint64_t record = 0; record < found.size(); ++record) {
    if (found[record] == 0) continue;
    const Key key = kMark | record;
    const std::vector<ShardId> shards = {shard_of(key, kShards)};
    const std::vector<ShardEpoch> epochs = {{1, 1}};
    std::vector<uint32_t> begin(kShards + 1, 0);
    for (uint32_t s = shards[0] + 1; s <= kShards; ++s) begin[s] = 1;
    const std::vector<float> zero(kDim);
    const std::vector<const float*> tables = {zero.data(), zero.data()};
    PushRequest request;
    request.claim = {1, kGeometry, {test_batch(i++)}, Verdict::kApplied};
    request.shards = shards;
    request.epochs = epochs;
    request.keys = {&key, begin.data()};
    request.counts = &found[record];
    request.tables = tables;
    jobs_.push(request, [](const PushReply& reply) {
      ASSERT_EQ(reply.answers[0].answer, Answer::kApplied);
    });
  }
  const JobTotals sum = totals(1, expected).value();
  EXPECT_EQ(sum.expected_seen, 25U - 2U) << "record 7 has no row";
  EXPECT_EQ(sum.lost, 2U);
  EXPECT_EQ(sum.doubled, 2U);
  EXPECT_EQ(sum.occurrences[0], 23U);
  EXPECT_EQ(totals(1, {}).value().expected_seen, 0U);
  EXPECT_GT(sum.rss_bytes, 0U);
}

}  // namespace
}  // namespace flux
