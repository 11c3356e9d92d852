// RecordSchema: what every record of a block file holds, by name and in order.
//
// Stands at the head of the file as JSON, so that a person can read it with `head -c 400`.
// Plain values and pure functions. Failure: kCorrupt, without the path, which the caller knows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/dataset.h"

namespace flux {

struct RecordSchema {
  std::vector<std::string> labels, dense, slots;
  bool weights = false;   // each record has a weight
  bool groups = false;    // and whose it is (a user, a search)
  bool many_keys = true;  // a slot has any number of keys, else exactly one
  bool values = false;    // each key has a value

  // Bytes of a record before its keys, without the counts of many keys.
  uint32_t fixed_bytes() const;
  uint32_t key_bytes() const { return values ? 12 : 8; }  // with its value
  std::string to_json() const;
  static Result<RecordSchema> from_json(std::string_view text);
};

// The schema of what the files of a job hold, before features are computed from it.
RecordSchema schema_of(const DataOptions& options);
// The options that read the same examples from a block file with that schema.
DataOptions block_file_options(const DataOptions& source);

}  // namespace flux
