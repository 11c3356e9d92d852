// SchemaMap: where in the records of a file the features of a job are.
//
// A job names labels, dense features and slots; a file may have them in another order. It has to
// have them all, and nothing else: what is not declared would be dropped without a word.
// Plain values. Failure: kInvalid with the path, the names and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/blocks/record_schema.h"

namespace flux {

struct SchemaMap {
  bool same_slots = true;                      // and so keys can be taken as they are
  std::vector<uint32_t> labels, dense, slots;  // for each of the job's: its place in the file's
};

Result<SchemaMap> map_schema(const std::string& path, const RecordSchema& file,
                             const RecordSchema& job);

}  // namespace flux
