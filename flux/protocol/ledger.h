// Ledger: what one shard has applied, by batch identity.
//
// It lives next to the shard's rows: same critical section, same log, same snapshot, so that rows
// and ledger can never disagree. One bit per finished block, a mask and verdicts per open block;
// passes below the watermark are closed by a committed manifest and keep nothing.
// Threads: none inside; the shard's owner holds its lock. Pure but for memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "flux/base/bytes.h"
#include "flux/base/status.h"
#include "flux/protocol/batch_id.h"

namespace flux {

constexpr uint32_t kBlocksPerSectionMax = 1U << 26;  // bounds what a message or a file can ask for

class Ledger {
 public:
  // Whether the batch can be marked or looked up at all: its block is within bounds and, if it is
  // open, has as many batches as its other marks said. For claims that come from outside.
  bool fits(const BatchId& id) const;
  // The verdict of a batch, if it has one. Batches of closed passes answer kApplied.
  std::optional<Verdict> find(const BatchId& id) const;
  // Records a verdict; the batch must not have one yet.
  void mark(const BatchId& id, Verdict verdict);
  // Batches of a block that have a verdict; all ones when the block is finished or its pass closed.
  uint32_t marked(const BlockId& id) const;

  // Passes below this one are closed.
  uint32_t watermark() const { return watermark_; }
  // Drops everything about passes below `pass`; `pass` must not be below the watermark.
  void close_below(uint32_t pass);
  // Batches of one open pass by verdict.
  std::array<uint64_t, kVerdicts> totals(uint32_t pass) const;

  void encode(ByteWriter* out) const;
  // Reads what encode() wrote; kCorrupt on anything else. The result encodes to the same bytes.
  static Result<Ledger> decode(ByteReader* in);
  bool operator==(const Ledger&) const = default;

 private:
  struct OpenBlock {
    uint32_t block = 0;
    uint32_t mask = 0;      // batches with a verdict
    uint64_t verdicts = 0;  // two bits per batch
    uint8_t batches = 0;
    bool possible() const;  // as mark() could have left it
    bool operator==(const OpenBlock&) const = default;
  };
  struct Section {                   // one (pass, phase, epoch)
    std::vector<uint64_t> finished;  // one bit per block, all of whose batches are applied
    std::vector<OpenBlock> open;     // sorted by block
    uint64_t finished_batches = 0;
    bool is_finished(uint32_t block) const;
    void set_finished(uint32_t block);
    const OpenBlock* find(uint32_t block) const;
    OpenBlock& find_or_add(const BatchId& id);
    Status decode(ByteReader* in);
    bool operator==(const Section&) const = default;
  };
  using SectionKey = std::tuple<uint32_t, uint16_t, uint16_t>;
  const Section* section(const BlockId& id) const;

  std::map<SectionKey, Section> sections_;
  uint32_t watermark_ = 0;
};

}  // namespace flux
