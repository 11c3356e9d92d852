#include "flux/data/tools/record_text.h"

#include <iterator>

#include <fmt/format.h>

namespace flux {

void append_record_text(const RecordSchema& schema, const Batch& batch, uint32_t example,
                        const KeyText& key_text, std::string_view name, std::string* out) {
  const auto put = std::back_inserter(*out);
  const auto put_key = [&](uint64_t key) {
    if (key_text != nullptr)
      key_text(key, out);
    else
      fmt::format_to(put, "{}", key);
  };
  for (size_t l = 0; l < schema.labels.size(); ++l)
    fmt::format_to(put, "{}{}", l == 0 ? "" : ",", batch.labels[l * batch.size + example]);
  if (schema.weights) fmt::format_to(put, " w={}", batch.weights[example]);
  if (schema.groups) {
    *out += " sid=";
    put_key(batch.groups[example]);
  }
  for (uint32_t s = 0; s < batch.slots; ++s) {
    const size_t place = size_t{example} * batch.slots + s;
    const size_t begin = batch.begin.empty() ? place : batch.begin[place];
    const size_t end = batch.begin.empty() ? place + 1 : batch.begin[place + 1];
    for (size_t k = begin; k < end; ++k) {
      fmt::format_to(put, " {}:", schema.slots[s]);
      put_key(batch.keys[k]);
      if (!batch.values.empty()) fmt::format_to(put, ":{}", batch.values[k]);
    }
  }
  for (uint32_t d = 0; d < batch.dense; ++d) {
    const float value = batch.dense_values[size_t{example} * batch.dense + d];
    if (value != 0) fmt::format_to(put, " {}:{}", schema.dense[d], value);
  }
  if (!name.empty()) fmt::format_to(put, " id={}", name);
}

}  // namespace flux
