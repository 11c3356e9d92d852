// Where a batch lies in the files, for people who look for what is wrong with it.
//
// Records are numbered from 1 within their file, as lines are in an editor and in messages of the
// parser. Bytes count from 0; the end is one past the last.
// Pure functions. An index that the geometry lacks gives a text that says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/data/geometry.h"

namespace flux {

// From the geometry alone, so bytes are those of the batch's block:
//   "a.tsv:200..400 (records 21 to 30)"                       the block holds nothing else
//   "a.tsv:200..400 (records 21 to 30 of 21 to 40)"
//   "a.tsv:200..400 (10 records of 21 to 40, shuffled for epoch 2)"
//   "b.tsv.gz: records 1 to 5"                                compressed: no bytes to seek to
std::string describe_batch(const Geometry& geometry, uint32_t block, uint32_t batch,
                           uint32_t epoch = 0);

// The records of a batch in the order in which it holds them; empty if there is no such batch.
std::vector<uint64_t> records_of_batch(const Geometry& geometry, uint32_t block, uint32_t batch,
                                       uint32_t epoch);

// The parts of such texts. `bytes`: "200..400" after the path, unless the file is compressed.
struct TextRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
std::string place_text(const std::string& path, bool packed, TextRange bytes,
                       const std::string& records);

}  // namespace flux
