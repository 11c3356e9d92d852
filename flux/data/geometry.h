// Geometry: how the data of one pass is cut, frozen before its first lease.
//
// Files are cut into blocks (the unit that is leased, at most kBlockBatches batches) and blocks
// into batches by position, so that a batch has an identity that does not depend on who trains it.
// A block never spans files. Line r of a block is its r-th; batch j of a block holds the lines
// order[j * batch_size ..], where `order` is the block's shuffle for an epoch (as they stand when
// shuffling is off) of its lines without those that were set aside (data.bad_records): these are no
// records and are counted nowhere here. The hash travels with every lease, push and ledger.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/sources/packing.h"

namespace flux {

constexpr uint32_t kBlockBatches = 32;

struct DataFile {
  std::string path;
  uint64_t bytes = 0;  // size on disk
  uint64_t records = 0;
  Packing packing = Packing::kPlain;
  // What tells whether a file of the same size is still the same; no part of the geometry's hash.
  uint64_t modified_ns = 0;  // by the file system's clock
  uint64_t content = 0;      // hash of the text, looked at only if the clock says "modified"
  // Its text can only be read from front to back, so its blocks are leased in order.
  bool in_order = false;
};

struct DataBlock {
  uint32_t file = 0;               // index into Geometry::files
  uint64_t begin = 0;              // byte offset of the first record, in the uncompressed text
  uint64_t end = 0;                // one past the last byte
  uint64_t first_record = 0;       // number of the first record, counted over all files of the pass
  uint32_t records = 0;            // 1 to batch_size * kBlockBatches
  uint64_t lines_before = 0;       // in its file
  std::vector<uint32_t> bad = {};  // lines of it that were set aside, rising
  // Of text that is unpacked or made: hash_batches() of it (batch_hash.h), so that a text that is
  // not the same each time is noticed. 0: not known; no part of the geometry's hash.
  uint64_t content = 0;

  uint64_t lines() const { return records + bad.size(); }
  // The number over all files of the pass of the record in line `line`, which is none of `bad`.
  uint64_t number_in_pass(uint32_t line) const;
};

struct Geometry {
  std::string format;  // "criteo_tsv"
  std::string pipe;    // the command that the files go through, as JSON; "": none
  uint32_t batch_size = 0;
  uint64_t shuffle_seed = 0;  // 0: records keep their order
  std::vector<DataFile> files;
  std::vector<DataBlock> blocks;
  uint64_t bad_before = 0;  // records that were set aside and are in none of the blocks

  uint64_t records() const;
  uint32_t batches_in(uint32_t block) const;  // 1..kBlockBatches
  uint64_t batches() const;
  uint64_t bad_records() const;  // set aside, all of them
  // Examples in one batch.
  uint32_t batch_records(uint32_t block, uint32_t batch) const;
  uint64_t hash() const;

  std::string to_json() const;
  static Result<Geometry> from_json(std::string_view text);
};

// Sets DataBlock::lines_before of all blocks; the geometry has the blocks of whole files.
void number_lines(Geometry* geometry);

// Batches per block of a pass: at most kBlockBatches, fewer when the pass would otherwise have less
// than about 64 blocks. A function of the data and the batch size only, never of the machine.
uint32_t block_batches(uint64_t records, uint32_t batch_size);

// Differences a person can act on ("batch_size 1000, was 500"; "data/a.tsv: 10 bytes, was 12"),
// empty when `now` is `before`.
std::vector<std::string> geometry_differences(const Geometry& before, const Geometry& now);

// The lines of a block's records in the order of one epoch, drawn from (shuffle_seed, epoch,
// block), or rising if shuffle_seed is 0.
std::vector<uint32_t> block_order(const Geometry& geometry, uint32_t block, uint32_t epoch);

}  // namespace flux
