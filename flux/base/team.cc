#include "flux/base/team.h"

#include <immintrin.h>

#include "flux/base/check.h"
#include "flux/base/executor.h"

namespace flux {
namespace {

// A ticket: run number | blocks | next block. Claiming adds one; whoever gets a number beyond the
// blocks has claimed nothing, and there are at most kMembersMax of those, so it never overflows.
constexpr uint32_t kCountBits = 20;
constexpr uint64_t kCountMask = (1U << kCountBits) - 1;
static_assert(Team::kBlocksMax + Team::kMembersMax < kCountMask);

uint32_t blocks_of(uint64_t ticket) {
  return static_cast<uint32_t>(ticket >> kCountBits & kCountMask);
}
uint32_t next_of(uint64_t ticket) {
  return static_cast<uint32_t>(ticket & kCountMask);
}

// Waking a core that sleeps costs more than most pauses between two runs last.
constexpr TimeNs kSpinNs = 60 * kMillisecond / 1000;
constexpr int kPausesPerLook = 16;  // at the clock

// Spins until `there()`, but not longer than kSpinNs; false: it is not there.
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
  }
}

}  // namespace

Team::Team(uint32_t members) {
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
  done_.store(0, std::memory_order_relaxed);
  ticket_.store((++runs_ << (2 * kCountBits)) | (uint64_t{blocks} << kCountBits));
  if (sleepers_.load() > 0) {
    wakes_.fetch_add(1);
    wakes_.notify_all();
  }
  work_blocks(0);
  await_done(blocks);
}

bool Team::has_blocks() const {
  const uint64_t ticket = ticket_.load(std::memory_order_relaxed);
  return next_of(ticket) < blocks_of(ticket);
}

// A block that was claimed keeps its run alive, so what belongs to the run may be read.
void Team::work_blocks(uint32_t member) {
  while (has_blocks()) {
    const uint64_t claimed = ticket_.fetch_add(1, std::memory_order_acquire);
    const uint32_t block = next_of(claimed), blocks = blocks_of(claimed);
    if (block >= blocks) return;
    call_(context_, block, member);
    if (done_.fetch_add(1) + 1 == blocks && caller_sleeps_.load()) done_.notify_one();
  }
}

void Team::await_done(uint32_t blocks) {
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == blocks; };
  if (spin_until(all_done)) return;
  caller_sleeps_.store(true);
  for (uint32_t done = done_.load(); done < blocks; done = done_.load()) done_.wait(done);
  caller_sleeps_.store(false);
}

void Team::serve(uint32_t member) {
  while (!stop_.load(std::memory_order_relaxed)) {
    work_blocks(member);
    if (spin_until([this] { return has_blocks() || stop_.load(std::memory_order_relaxed); }))
      continue;
    const uint32_t wakes = wakes_.load();
    sleepers_.fetch_add(1);
    // A run that begins from here on sees a sleeper and wakes it.
    if (next_of(ticket_.load()) >= blocks_of(ticket_.load()) && !stop_.load()) wakes_.wait(wakes);
    sleepers_.fetch_sub(1);
  }
}

}  // namespace flux
