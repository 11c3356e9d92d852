// Team: a few threads that work on one thing at a time, together.
//
// run() cuts work into blocks that members claim one by one, the caller among them, and returns
// when every block is done. It waits for blocks, never for members: one that comes late, because
// its core is busy with something else, finds nothing to claim. So what a block computes must not
// depend on who does it. Each member begins with blocks of its own, the same ones in runs of the
// same length, so that what it left in its caches is of use to it, and then helps the others. A run
// costs a few microseconds: members spin for a moment between runs before they sleep. A team may
// have more members than the machine has cores: the others sleep. Threads: run() by one thread at a
// time, which is member 0; the others are the team's own. Blocks may not call run(). Failure: none;
// a block must not throw.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace flux {

class Team {
 public:
  static constexpr uint32_t kMembersMax = 1024;
  static constexpr uint32_t kBlocksMax = 1U << 18;

  // One member is a team without threads.
  explicit Team(uint32_t members);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  uint32_t members() const { return members_; }

  // Calls work(block, member) once for each block below `blocks`.
  template <typename F>
  void run(uint32_t blocks, const F& work) {
    if (members_ == 1 || blocks <= 1) {
      for (uint32_t block = 0; block < blocks; ++block) work(block, 0);
      return;
    }
    run_together(
        blocks,
        [](const void* context, uint32_t block, uint32_t member) {
          (*static_cast<const F*>(context))(block, member);
        },
        &work);
  }

 private:
  using Call = void (*)(const void* context, uint32_t block, uint32_t member);
  // What is left of the blocks that one member begins with; see team.cc.
  struct alignas(64) Share {
    std::atomic<uint64_t> ticket{0};
  };

  void run_together(uint32_t blocks, Call call, const void* context);
  bool work_share(Share* share, uint32_t member);
  void work_blocks(uint32_t member);
  void wake(uint32_t helpers);
  void await_done(uint32_t blocks);
  void serve(uint32_t member);

  const uint32_t members_;
  const uint32_t useful_;  // helpers that find a core
  std::unique_ptr<Share[]> shares_;
  uint64_t runs_ = 0;
  // Of the run under way: written before its tickets, read after a block of it was claimed.
  Call call_ = nullptr;
  const void* context_ = nullptr;
  uint32_t blocks_ = 0;
  alignas(64) std::atomic<uint64_t> begun_{0};  // runs
  alignas(64) std::atomic<uint32_t> done_{0};
  std::atomic<bool> caller_sleeps_{false};
  alignas(64) std::atomic<uint32_t> wakes_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace flux
