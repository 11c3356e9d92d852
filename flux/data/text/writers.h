// Text formats as they are written: for `flux data convert`. What is read back with the job section
// that goes with it trains to the same weights.
//
// Keys are written as the tables have them (data.raw_keys). Numbers are the shortest that give the
// same number again. Pure functions. Failure: kInvalid where a format cannot hold the data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flux/data/batch.h"
#include "flux/data/blocks/record_schema.h"

namespace flux {

// What lines hold: records, and perhaps what their examples are called.
struct WrittenSchema : RecordSchema {
  bool names = false;
  std::string group_slot{};  // of `slots`, whose first key says the group; "": no slot does
};

struct TextWriter {
  enum Names : uint8_t {
    kNoNames,      // are left out
    kNamesInLine,  // of those examples that have one
    kNameColumn,   // of all examples, if WrittenSchema says so
  };

  const char* format;
  Names names;
  bool groups;  // whether lines say them; else only the slot can
  // Ok: data of this shape can be written.
  Status (*can_hold)(const WrittenSchema& schema);
  // What stands before the first record; may be null.
  std::string (*head)(const WrittenSchema& schema);
  // Appends an example, without a newline. `name`: what it is called; "": nothing.
  Status (*append)(const WrittenSchema& schema, const Batch& batch, uint32_t example,
                   std::string_view name, std::string* out);
  // Lines of the job's data section that only this format has; may be null.
  std::string (*job)(const WrittenSchema& schema);
};

// Null: the format is not written.
const TextWriter* find_text_writer(const std::string& format);
std::vector<std::string> text_writer_names();

// The `data` section of a job that reads what was written to `path`.
std::string written_data_section(const WrittenSchema& schema, const std::string& format,
                                 const std::string& path);
// data.features of a job as its data section says them, settings that are not the default; "" if
// there are none.
std::string features_section(std::span<const FeatureOptions> features);

}  // namespace flux
