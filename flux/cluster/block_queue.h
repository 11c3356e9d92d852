// BlockQueue: the blocks of one (pass, phase, epoch) and where each stands.
//
//   todo -> pending (leased) -> applied (every shard has it) -> done (replicated or durable)
//   aside: a batch of it is condemned and has no verdict on every shard yet
//
// States are derived from the shards' own reports; what workers report is a hint that moves a
// block on sooner. Any restore or change of owners recomputes them, so applied and done can go back
// to todo. A lease carries the mask of batches that every shard already has; only the rest is
// trained again. A lease ends when what was to come of it is there, or was there and is lost again.
//
// Time-outs: a lease without progress runs out and the block goes to others. The former holder may
// still finish it; identity makes that safe, and its hints count. It does not get the block a
// second time unless, for another time-out, nothing moves and nobody else takes it.
// Lending: when nothing is left to lease, a worker without work may have a block of one whose
// leases have not moved for a while (it may be cut off from a server); so nobody waits for a
// time-out at the end of a section. Poison: a worker that dies is evidence against everything it
// had begun. A block with enough deaths is suspect: it is leased one batch at a time, and only to a
// worker that has nothing else in hand, so that the next death points at that batch. Only such
// deaths condemn a batch; time-outs and graceful leaves never do. Where workers die of other causes
// too, it takes more of them: as many as chance would hardly bring on one batch. Pure: events in,
// answers out; the caller brings the time. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "flux/base/executor.h"
#include "flux/protocol/batch_id.h"

namespace flux {

using WorkerId = uint64_t;

enum class BlockState : uint8_t { kTodo, kPending, kApplied, kDone, kAside };
const char* block_state_name(BlockState state);

struct BlockLease {
  BlockId id;
  uint32_t batches = 0;    // in the block
  uint32_t skip_mask = 0;  // batches that are not to be trained under this lease
  uint32_t attempt = 0;    // for logs only
  WorkerId worker = 0;     // whose lease it is or was; for logs only, not sent
};

struct BlockQueueOptions {
  TimeNs timeout_floor_ns = 30 * kSecond;
  double timeout_factor = 5;         // x the moving average of what a block takes
  TimeNs lend_after_ns = kSecond;    // or the moving average, if that is longer
  uint32_t deaths_before_alone = 2;  // then the block is suspect
  uint32_t deaths_alone_max = 3;     // then the batch is condemned; 0: never
  // That so many deaths hit an innocent batch, by the rate of the other deaths: if it is more
  // likely than this, up to kDeathsFactor x deaths_alone_max deaths are waited for.
  double innocent_chance = 1e-6;
};

class BlockQueue {
 public:
  static constexpr uint32_t kDeathsFactor = 4;

  // `section` gives pass, phase and epoch; block b has batches[b] batches; leases go out in `order`
  // (a permutation of the blocks).
  BlockQueue(BlockId section, std::vector<uint8_t> batches, std::vector<uint32_t> order,
             BlockQueueOptions options = {});

  // Batches of each block that every shard has (the AND over shards of Ledger::marked), at the
  // start or after a restore or a change of owners. `safe` says that these are also replicated or
  // durable. Recomputes every state; leases stay with their workers. A condemned batch that shards
  // have lost is handed over again.
  void recompute(std::span<const uint32_t> marked_by_all, bool safe);

  // The next block for a worker. False: nothing for this worker now. That may change with any
  // event, also when only suspects are left and the worker has other blocks in hand, or has a
  // suspect in hand (it gets nothing beside it).
  bool lease(WorkerId worker, TimeNs now, BlockLease* out);
  // Nothing is left to lease: one of the blocks of a worker that gets nowhere. To be asked only for
  // a worker that holds nothing.
  bool lend(WorkerId worker, TimeNs now, BlockLease* out);
  // The worker has a lease of the block from a coordinator before this one, and knows that the
  // batches of `applied` are everywhere. False: the lease is not its own (any more): others have
  // the block by now, it is finished, or it does not belong here.
  bool adopt(WorkerId worker, const BlockId& id, uint32_t applied, TimeNs now);
  // Somebody saw every shard acknowledge one batch. Hints that do not belong here are ignored.
  void batch_applied(const BatchId& id, TimeNs now);
  // The worker is gone: what it holds goes back to where it was in the order. `died`: it did not
  // say goodbye, so each block that it had in hand counts a death, but those it had not begun.
  void release(WorkerId worker, bool died, const std::set<BlockId>& not_begun = {});
  // The worker gives one block back; ignored when it does not hold it.
  void release_block(WorkerId worker, const BlockId& id);

  // Takes back the blocks on which nothing has moved for timeout_ns(), and reports those leases.
  std::vector<BlockLease> expire(TimeNs now);
  // When expire() has something to do if nothing moves. Afterwards leases may be had that could not
  // be had before.
  std::optional<TimeNs> next_time() const;
  TimeNs timeout_ns() const;

  // Batches condemned since the last call. Their blocks stay aside until each is settled.
  std::vector<BatchId> take_poisoned();
  // Every shard has a verdict on the batch now.
  void settled(const BatchId& id);
  // A condemned batch turned out to be innocent: a shard has it, so somebody could train it. Its
  // block is leased again; the deaths so far count no more.
  void absolve(const BatchId& id);

  // A save takes: point = mark_point(), then the shards write, then the manifest is committed, then
  // applied_before_are_safe(point). Hints that came in after mark_point() are not taken for
  // durable. Only the newest point counts, and none that a recompute took something back from.
  uint64_t mark_point();
  void applied_before_are_safe(uint64_t point);

  bool all_applied() const { return applied_ + done_ == blocks_.size(); }
  bool all_done() const { return done_ == blocks_.size(); }
  size_t todo() const { return todo_.size(); }
  size_t pending() const { return pending_.size(); }
  size_t applied() const { return applied_; }
  size_t done() const { return done_; }
  size_t aside() const { return aside_; }
  size_t held_by(WorkerId worker) const;            // leases that have not run out
  uint64_t batches_held_by(WorkerId worker) const;  // of them, batches not known to be applied
  BlockState state(uint32_t block) const { return blocks_[block].state; }
  // Batches that are known to be applied everywhere.
  uint32_t applied_mask(uint32_t block) const { return blocks_[block].applied_mask; }
  const BlockId& section() const { return section_; }
  uint64_t reissued() const { return reissued_; }  // leases of blocks that came back unfinished

 private:
  static constexpr int kWhole = -1;  // a lease of the block, not of one batch alone
  struct Hand {
    int alone = kWhole;  // the batch that is leased alone
    uint32_t mask = 0;   // batches that are to come of it
  };
  using Hands = std::map<uint32_t, Hand>;  // by block
  struct Block {
    BlockState state = BlockState::kTodo;
    uint8_t batches = 0;
    bool came_back = false;   // unfinished, since its last lease
    bool former_may = false;  // todo: who had it when its time ran out may have it again
    uint8_t next_alone = 0;   // where to look for the next batch to lease alone
    uint32_t rank = 0;        // place in the order
    uint32_t applied_mask = 0;
    uint32_t safe_mask = 0;
    uint32_t point_mask = 0;      // applied when the newest point was marked
    uint32_t condemned_mask = 0;  // remembered for good
    uint32_t attempts = 0;
    uint32_t deaths = 0;
    uint32_t shared_deaths = 0;  // of them, those that point at no batch
    WorkerId worker = 0;         // while pending
    TimeNs leased_ns = 0;
    TimeNs moved_ns = 0;           // last progress
    std::vector<WorkerId> former;  // leases that ran out; they may be at it still
    uint32_t all() const { return batch_mask(batches); }
    bool waits_for_verdict() const { return (condemned_mask & ~applied_mask) != 0; }
  };
  Block* find(const BatchId& id);
  bool suspect(const Block& block) const { return block.deaths >= options_.deaths_before_alone; }
  bool may_lease(uint32_t b, const Hands& in_hand) const;
  void set_state(uint32_t b, BlockState state);
  // The state of a block that nobody has a lease of.
  void set_resting_state(uint32_t b);
  // One more batch has a verdict everywhere.
  void take_mark(uint32_t b, uint32_t batch);
  // After a change of its masks: leases of what every shard has are over, and the state follows.
  void settle(uint32_t b);
  void drop_hand(WorkerId worker, uint32_t b);
  int choose_alone(Block* block) const;
  BlockLease lease_of(uint32_t b, int alone) const;
  void take_lease(uint32_t b, WorkerId worker, TimeNs now);
  void give_back(uint32_t b);
  void run_out(uint32_t b, TimeNs now);
  void count_death(uint32_t b, int alone, bool alone_in_hand);
  // Deaths on a batch alone that condemn it.
  uint32_t deaths_needed(uint32_t b, int alone) const;
  void hand_over(uint32_t b, uint32_t batches);

  BlockId section_;
  BlockQueueOptions options_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> order_;
  std::set<uint32_t> todo_;            // ranks
  std::set<uint32_t> pending_;         // blocks
  std::map<WorkerId, Hands> in_hand_;  // what each may be working on, also leases that ran out
  std::map<WorkerId, TimeNs> moved_;   // last progress of each that has something in hand
  std::map<std::pair<uint32_t, int>, uint32_t> alone_deaths_;  // by block, batch
  std::vector<BatchId> poisoned_;
  uint64_t deaths_ = 0;    // of workers with something in hand
  uint64_t survived_ = 0;  // batches that somebody finished
  size_t applied_ = 0;
  size_t done_ = 0;
  size_t aside_ = 0;
  uint64_t point_ = 0;
  bool point_void_ = false;
  uint64_t reissued_ = 0;
  double average_ns_ = 0;  // of whole blocks, from lease to applied; 0: none yet
};

}  // namespace flux
