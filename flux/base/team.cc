#include "flux/base/team.h"

#include <algorithm>

#include <immintrin.h>
#include <sched.h>

#include "flux/base/check.h"
#include "flux/base/executor.h"

namespace flux {
namespace {

// A ticket: run number | one past the last block | next block. Claiming adds one; whoever gets a
// number at or beyond the end has claimed nothing, and there are at most kMembersMax of those, so
// it never overflows. All tickets of a run that is over are at their end.
constexpr uint32_t kCountBits = 20;
constexpr uint64_t kCountMask = (1U << kCountBits) - 1;
static_assert(Team::kBlocksMax + Team::kMembersMax < kCountMask);

uint32_t end_of(uint64_t ticket) {
  return static_cast<uint32_t>(ticket >> kCountBits & kCountMask);
}
uint32_t next_of(uint64_t ticket) {
  return static_cast<uint32_t>(ticket & kCountMask);
}
bool is_open(uint64_t ticket) {
  return next_of(ticket) < end_of(ticket);
}

// Waking a core that sleeps costs more than most pauses between two runs last.
constexpr TimeNs kSpinNs = 60 * kMillisecond / 1000;
constexpr int kPausesPerLook = 16;  // at the clock

// Spins until `there()`, but not longer than kSpinNs; false: it is not there. Whoever else wants
// the core gets it.
template <typename F>
bool spin_until(const F& there) {
  TimeNs begin = 0;
  for (;;) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (there()) return true;
      _mm_pause();
    }
    const TimeNs now = steady_now_ns();
    if (begin == 0) begin = now;
    if (now - begin > kSpinNs) return false;
    if (now - begin > kSpinNs / 10) sched_yield();
  }
}

}  // namespace

Team::Team(uint32_t members)
    : members_(members),
      useful_(std::min(members, std::max(1U, std::thread::hardware_concurrency())) - 1),
      shares_(std::make_unique<Share[]>(members)) {
  FLUX_CHECK(members >= 1 && members <= kMembersMax, "a team of {}", members);
  for (uint32_t member = 1; member < members; ++member)
    threads_.emplace_back([this, member] { serve(member); });
}

Team::~Team() {
  stop_.store(true);
  wakes_.fetch_add(1);
  wakes_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::run_together(uint32_t blocks, Call call, const void* context) {
  FLUX_CHECK(blocks <= kBlocksMax, "{} blocks", blocks);
  call_ = call;
  context_ = context;
  blocks_ = blocks;
  done_.store(0, std::memory_order_relaxed);
  ++runs_;
  for (uint32_t m = members_; m-- > 0;) {
    const uint64_t first = uint64_t{blocks} * m / members_,
                   end = uint64_t{blocks} * (m + 1) / members_;
    if (first < end)
      shares_[m].ticket.store((runs_ << (2 * kCountBits)) | (end << kCountBits) | first,
                              std::memory_order_release);
  }
  begun_.store(runs_);
  wake(blocks - 1);
  work_blocks(0);
  await_done(blocks);
}

// Not more than there are blocks for, nor than the machine has cores for.
void Team::wake(uint32_t helpers) {
  const uint32_t sleepers = sleepers_.load();
  if (sleepers == 0) return;
  const uint32_t awake = members_ - 1 - sleepers;
  const uint32_t wanted = std::min(helpers, useful_);
  if (awake >= wanted) return;
  wakes_.fetch_add(1);
  for (uint32_t i = awake; i < wanted; ++i) wakes_.notify_one();
}

// A block that was claimed keeps its run alive, so what belongs to the run may be read. True: the
// run is done by this.
bool Team::work_share(Share* share, uint32_t member) {
  while (is_open(share->ticket.load(std::memory_order_relaxed))) {
    const uint64_t claimed = share->ticket.fetch_add(1, std::memory_order_acquire);
    if (!is_open(claimed)) return false;
    const uint32_t blocks = blocks_;
    call_(context_, next_of(claimed), member);
    if (done_.fetch_add(1) + 1 < blocks) continue;
    if (caller_sleeps_.load()) done_.notify_one();
    return true;
  }
  return false;
}

void Team::work_blocks(uint32_t member) {
  for (uint32_t i = 0; i < members_; ++i)
    if (work_share(&shares_[(member + i) % members_], member)) return;
}

void Team::await_done(uint32_t blocks) {
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == blocks; };
  if (spin_until(all_done)) return;
  caller_sleeps_.store(true);
  for (uint32_t done = done_.load(); done < blocks; done = done_.load()) done_.wait(done);
  caller_sleeps_.store(false);
}

void Team::serve(uint32_t member) {
  uint64_t seen = 0;
  const auto news = [&] {
    return begun_.load(std::memory_order_acquire) != seen || stop_.load(std::memory_order_relaxed);
  };
  while (!stop_.load(std::memory_order_relaxed)) {
    seen = begun_.load(std::memory_order_acquire);
    work_blocks(member);
    if (spin_until(news)) continue;
    const uint32_t wakes = wakes_.load();
    sleepers_.fetch_add(1);
    // A run that begins from here on sees a sleeper and wakes it.
    if (begun_.load() == seen && !stop_.load()) wakes_.wait(wakes);
    sleepers_.fetch_sub(1);
  }
}

}  // namespace flux
