// Replication with real threads: pushes, pulls, confirms, forwards that come in any order, changes
// of roles beside them. Run under TSan too.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "flux/base/thread_executor.h"
#include "flux/server/test_replicas.h"

namespace flux {
namespace {

const std::vector<ShardId> kAll = TestCluster::every_shard();

// Threads that run what they are given, in an order of their own.
class Crew {
 public:
  explicit Crew(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void run(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      std::swap(tasks_.back(), tasks_[random_.below(tasks_.size())]);
    }
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Random random_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// Messages and answers each travel on the crew; some are lost.
class CrewLink final : public ReplicaPort {
 public:
  CrewLink(Crew* crew, std::shared_ptr<Server>* to) : crew_(crew), to_(to) {}
  void replicate(const ReplicateRequest& request,
                 std::function<void(const ReplicateReply&)> done) override {
    const auto copy = std::make_shared<Incoming>(request, nullptr);
    const bool lost = sent_.fetch_add(1) % 7 == 3;
    crew_->run([this, copy, done = std::move(done), lost] {
      if (lost && sent_ % 2 == 0)
        return done({Status(Code::kUnavailable, "lost on the way there"), {}});
      (*to_)->replicate(copy->request, [this, done, lost](const ReplicateReply& reply) {
        crew_->run([done, reply, lost] {
          done(lost ? ReplicateReply{Status(Code::kUnavailable, "lost on the way back"), {}}
                    : reply);
        });
      });
    });
  }
  void install(const InstallRequest& request, std::function<void(Status)> done) override {
    (*to_)->install(request, std::move(done));
  }

 private:
  Crew* crew_;
  std::shared_ptr<Server>* to_;
  std::atomic<uint64_t> sent_{0};
};

class ThreadedPair : public testing::Test {
 protected:
  ThreadedPair() {
    loop_ = std::thread([this] {
      while (!stop_) executor_.run_one_until(executor_.now_ns() + 10 * kMillisecond);
    });
  }
  ~ThreadedPair() override {
    stop_ = true;
    loop_.join();
  }
  void make(ServerId i, const Assignments& places) {
    ServerOptions o = test_options();
    o.parameters = 20000;
    o.places = places;
    o.places->servers = {"0", "1"};
    o.self = i;
    o.executor = &executor_;
    o.reach = [this](const std::string& address) -> std::shared_ptr<ReplicaPort> {
      return std::make_shared<CrewLink>(&crew_, &servers_[std::stoul(address)]);
    };
    servers_[i] = std::move(Server::create(o)).value();
  }
  // Two dense shards here.
  static Assignments all(ReplicaRole role, ServerId backup, ShardEpoch epoch) {
    Assignments places = TestCluster::all(role, backup, epoch);
    places.shards.pop_back();
    return places;
  }
  static constexpr TimeNs kPatience = 120 * kSecond;

  ThreadExecutor executor_;
  std::shared_ptr<Server> servers_[2];
  Crew crew_{5};  // ends first: what it carries goes to servers
  std::atomic<bool> stop_{false};
  std::thread loop_;
};

// Pushes until every batch is replicated at whoever leads now. Several threads do this, and each
// batch is pushed by two of them.
void push_all(const std::atomic<Server*>& leader, const std::vector<std::unique_ptr<Pushed>>& all,
              uint32_t first, TimeNs deadline) {
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 4 != first && (i + 1) % 4 != first) continue;
    bool replicated = false;
    while (!replicated && steady_now_ns() < deadline) {
      Server* server = leader;
      PushRequest request = all[i]->data.request;
      std::vector<ShardEpoch> epochs;
      for (const ShardId id : request.shards) epochs.push_back(server->state(id).epoch);
      request.epochs = epochs;
      bool has_it = true;
      uint64_t receipt = 0;
      server->push(request, [&](const PushReply& reply) {
        for (const ShardAnswer& a : reply.answers)
          has_it &= a.answer == Answer::kApplied || a.answer == Answer::kDuplicate;
        receipt = reply.receipt;
      });
      if (!has_it) {
        std::this_thread::yield();
        continue;
      }
      auto said = std::make_shared<std::atomic<int>>(0);
      server->confirm(kLife, receipt, [said](const Status& status) {
        *said = status.is_ok() ? 1 : 2;
        said->notify_all();
      });
      said->wait(0);
      replicated = *said == 1;
    }
    EXPECT_TRUE(replicated) << "batch " << i;
  }
}

TEST_F(ThreadedPair, ReplicasAreEqualAndRolesChangeBesidePushes) {
  make(1, all(ReplicaRole::kBackup, kNoServer, {1, 1}));
  make(0, all(ReplicaRole::kPrimary, 1, {1, 1}));
  std::atomic<int> opened{0};
  servers_[0]->open_pass(servers_[0]->primaries(), 0, kGeometry, [&](const Status& status) {
    opened = status.is_ok() ? 1 : 2;
    opened.notify_all();
  });
  opened.wait(0);
  ASSERT_EQ(opened, 1);
  constexpr uint32_t kBatches = 80;
  std::vector<std::unique_ptr<Pushed>> pushes;
  for (uint32_t i = 0; i < kBatches; ++i)
    pushes.push_back(std::make_unique<Pushed>(i, i, *servers_[0], 60));
  std::atomic<Server*> leader{servers_[0].get()};
  const TimeNs deadline = steady_now_ns() + kPatience;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] { push_all(leader, pushes, t, deadline); });
  std::atomic<bool> over{false};
  std::thread puller([&] {
    std::vector<float> dense(20000);
    while (!over) {
      const std::vector<ShardId> shards = {8, 9};
      servers_[0]->pull({kLife, shards, {}, {}, dense.data()}, [](const PullReply&) {});
      (void)servers_[1]->totals(kAll);
      (void)servers_[0]->suspects();
      std::this_thread::yield();
    }
  });
  // The backup is dropped, copied anew and attached again, then takes over.
  const auto wait_for = [&](const std::function<bool()>& done) {
    while (!done() && steady_now_ns() < deadline) std::this_thread::yield();
    return done();
  };
  ASSERT_TRUE(servers_[0]->assign(all(ReplicaRole::kPrimary, kNoServer, {1, 2})).is_ok());
  ASSERT_TRUE(servers_[1]->assign(all(ReplicaRole::kNone, kNoServer, {1, 2})).is_ok());
  std::atomic<int> copied{0};
  while (copied != 1 && steady_now_ns() < deadline) {
    copied = 0;
    copy_all(servers_[0].get(), servers_[0]->primaries(), 1, "1",
             [&](const Status& status) { copied = status.is_ok() ? 1 : 2; });
    ASSERT_TRUE(wait_for([&] { return copied != 0; }));
  }
  ASSERT_TRUE(servers_[0]->assign(all(ReplicaRole::kPrimary, 1, {1, 3})).is_ok());
  ASSERT_TRUE(servers_[1]->assign(all(ReplicaRole::kBackup, kNoServer, {1, 3})).is_ok());
  const auto sealed = servers_[0]->seal(servers_[0]->primaries());
  ASSERT_TRUE(sealed.is_ok());
  Assignments promote = all(ReplicaRole::kPrimary, 0, {1, 4});
  for (size_t i = 0; i < promote.shards.size(); ++i) promote.shards[i].at_op = sealed.value()[i].op;
  ASSERT_TRUE(wait_for([&] {
    const auto states = servers_[1]->assign(promote).value();
    return std::all_of(states.begin(), states.end(), [](const ShardState& s) {
      return s.epoch == ShardEpoch{1, 4};
    });
  }));
  ASSERT_TRUE(servers_[0]->assign(all(ReplicaRole::kBackup, kNoServer, {1, 4})).is_ok());
  leader = servers_[1].get();
  for (std::thread& thread : threads) thread.join();
  over = true;
  puller.join();
  ASSERT_TRUE(wait_for([&] { return servers_[1]->forwards_open() == 0; }));
  const std::vector<ShardId> shards = servers_[1]->primaries().shards;
  ASSERT_EQ(shards.size(), 10U);
  EXPECT_TRUE(equal_replicas(*servers_[0], *servers_[1], shards));
  EXPECT_EQ(counts_of(*servers_[1], shards), counts_of(pushes));
  EXPECT_EQ(servers_[1]->totals(shards).dense.at(0).min, kBatches * 10U);
  EXPECT_EQ(servers_[1]->totals(shards).dense.at(0).max, kBatches * 10U);
  EXPECT_EQ(servers_[0]->diverged() + servers_[1]->diverged(), 0U);
}

}  // namespace
}  // namespace flux
