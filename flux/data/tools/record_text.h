// Examples as text that a person reads and the format `feasign` takes back.
//
//   1,0 w=0.5 sid=12 user:17 history:3 history:5 price:0.25 id=a7
// Numbers are the shortest that give the same number again. Dense features of 0 are left out.
// Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "flux/data/batch.h"
#include "flux/data/blocks/record_schema.h"

namespace flux {

// Appends example `example` of a batch that has the shape of `schema`, without a newline. A key
// (and a search or session) is written as `key_text` says; null: as a decimal number. `name`: what
// the example is called, "": nothing.
using KeyText = std::function<void(uint64_t key, std::string* out)>;
void append_record_text(const RecordSchema& schema, const Batch& batch, uint32_t example,
                        const KeyText& key_text, std::string_view name, std::string* out);

}  // namespace flux
