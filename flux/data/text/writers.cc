#include "flux/data/text/writers.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "flux/base/text.h"
#include "flux/data/criteo.h"
#include "flux/data/line_error.h"
#include "flux/data/text/multislot.h"
#include "flux/data/tools/record_text.h"

namespace flux {
namespace {

struct Range {
  size_t begin, end;
};

// Where the keys of a slot of an example are.
Range keys_of(const Batch& batch, uint32_t example, uint32_t slot) {
  const size_t place = size_t{example} * batch.slots + slot;
  if (batch.begin.empty()) return {place, place + 1};
  return {batch.begin[place], batch.begin[place + 1]};
}

float value_of(const Batch& batch, size_t key) {
  return batch.values.empty() ? 1.0F : batch.values[key];
}

float dense_of(const Batch& batch, uint32_t example, uint32_t number) {
  return batch.dense_values[size_t{example} * batch.dense + number];
}

Status cannot(const char* format, const std::string& what) {
  return invalid("--to {}: the format cannot hold {}", format, what);
}

// A name goes as it is, so it may have none of these characters.
Status check_name(const char* format, std::string_view name, std::string_view marks) {
  if (name.find_first_of(marks) == std::string_view::npos) return Status::ok();
  return cannot(format,
                fmt::format("the name {} of an example: it has a blank or another character "
                            "that means something there; csv can, and where names come "
                            "from csv, data.csv.ignore leaves them out",
                            shown_field(name)));
}

// Groups that a slot says need not be said again.
Status check_plain(const char* format, const WrittenSchema& schema, bool weights) {
  if (schema.labels.size() != 1)
    return cannot(format, fmt::format("{} labels", schema.labels.size()));
  if (!weights && schema.weights) return cannot(format, "weights of examples");
  if (schema.groups && !find_text_writer(format)->groups && schema.group_slot.empty())
    return cannot(format, "groups (data.group) that are no slot");
  return Status::ok();
}

Status holds_all(const WrittenSchema& /*schema*/) {
  return Status::ok();
}

Status append_feasign(const WrittenSchema& schema, const Batch& batch, uint32_t example,
                      std::string_view name, std::string* out) {
  FLUX_RETURN_IF_ERROR(check_name("feasign", name, " \t\r"));
  append_record_text(schema, batch, example, nullptr, name, out);
  return Status::ok();
}

Status multislot_holds(const WrittenSchema& schema) {
  if (schema.values) return cannot("multislot", "values of keys");
  for (const auto* names : {&schema.labels, &schema.slots, &schema.dense})
    for (const std::string& name : *names)
      if ((schema.names && name == "id") || (schema.groups && name == "sid"))
        return cannot("multislot", fmt::format("a feature of the name '{}', which is the column of "
                                               "{} there",
                                               name, name == "id" ? "names" : "sessions"));
  return Status::ok();
}

// A slot without keys has Paddle's padding, one 0.
Status append_multislot(const WrittenSchema& schema, const Batch& batch, uint32_t example,
                        std::string_view name, std::string* out) {
  const auto put = std::back_inserter(*out);
  for (size_t l = 0; l < schema.labels.size(); ++l)
    fmt::format_to(put, "{}1 {}", l == 0 ? "" : " ", batch.labels[l * batch.size + example]);
  if (schema.weights) fmt::format_to(put, " 1 {}", batch.weights[example]);
  if (schema.groups) fmt::format_to(put, " 1 {}", batch.groups[example]);
  FLUX_RETURN_IF_ERROR(check_name("multislot", name, " \t\r"));
  if (name == kNoName) return cannot("multislot", "the name '-' of an example: it means none");
  if (schema.names) fmt::format_to(put, " 1 {}", name.empty() ? kNoName : name);
  for (uint32_t s = 0; s < batch.slots; ++s) {
    const auto [begin, end] = keys_of(batch, example, s);
    if (begin == end) *out += " 1 0";
    if (begin < end) fmt::format_to(put, " {}", end - begin);
    for (size_t k = begin; k < end; ++k) {
      if (batch.keys[k] == 0)
        return cannot("multislot",
                      fmt::format("the key 0 of slot '{}': it is padding there", schema.slots[s]));
      fmt::format_to(put, " {}", batch.keys[k]);
    }
  }
  if (batch.dense > 0) fmt::format_to(put, " {}", batch.dense);
  for (uint32_t d = 0; d < batch.dense; ++d)
    fmt::format_to(put, " {}", dense_of(batch, example, d));
  return Status::ok();
}

// A text as it may stand in a list or map of YAML.
std::string yaml_word(const std::string& text) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  const bool null = text == "null" || text == "Null" || text == "NULL";
  if (!null && !text.empty() && text[0] != '-' &&
      text.find_first_not_of(plain) == std::string::npos)
    return text;
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string number_list(const std::vector<double>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  words.reserve(texts.size());
  for (const std::string& text : texts) words.push_back(yaml_word(text));
  return "[" + join(words, ", ") + "]";
}

std::string multislot_job(const WrittenSchema& schema) {
  std::vector<std::string> names = schema.labels;
  if (schema.weights) names.emplace_back("weight");
  if (schema.groups) names.emplace_back("sid");
  if (schema.names) names.emplace_back("id");
  names.insert(names.end(), schema.slots.begin(), schema.slots.end());
  if (!schema.dense.empty()) names.emplace_back("dense");
  return fmt::format("  columns: {}\n", yaml_list(names));
}

Status libsvm_holds(const WrittenSchema& schema) {
  if (schema.slots.size() != 1)
    return cannot("libsvm", fmt::format("{} slots, it has one; libffm and vw have several",
                                        schema.slots.size()));
  if (!schema.dense.empty()) return cannot("libsvm", "dense features");
  return check_plain("libsvm", schema, true);
}

Status append_libsvm(const WrittenSchema& schema, const Batch& batch, uint32_t example,
                     std::string_view /*name*/, std::string* out) {
  const auto put = std::back_inserter(*out);
  fmt::format_to(put, "{}", batch.labels[example]);
  if (schema.weights) fmt::format_to(put, ":{}", batch.weights[example]);
  if (schema.groups) fmt::format_to(put, " qid:{}", batch.groups[example]);
  const auto [begin, end] = keys_of(batch, example, 0);
  for (size_t k = begin; k < end; ++k)
    fmt::format_to(put, " {}:{}", batch.keys[k], value_of(batch, k));
  return Status::ok();
}

Status libffm_holds(const WrittenSchema& schema) {
  if (!schema.dense.empty()) return cannot("libffm", "dense features");
  return check_plain("libffm", schema, false);
}

Status append_libffm(const WrittenSchema& /*schema*/, const Batch& batch, uint32_t example,
                     std::string_view /*name*/, std::string* out) {
  const auto put = std::back_inserter(*out);
  fmt::format_to(put, "{}", batch.labels[example]);
  for (uint32_t s = 0; s < batch.slots; ++s) {
    const auto [begin, end] = keys_of(batch, example, s);
    for (size_t k = begin; k < end; ++k)
      fmt::format_to(put, " {}:{}:{}", s, batch.keys[k], value_of(batch, k));
  }
  return Status::ok();
}

Status vw_holds(const WrittenSchema& schema) {
  for (const std::string& slot : schema.slots)
    if (slot == "dense" || slot.find_first_of(":| \t") != std::string::npos)
      return cannot("vw", fmt::format("a slot of the name '{}'", slot));
  return check_plain("vw", schema, true);
}

Status append_vw(const WrittenSchema& schema, const Batch& batch, uint32_t example,
                 std::string_view name, std::string* out) {
  const auto put = std::back_inserter(*out);
  fmt::format_to(put, "{} ", batch.labels[example]);
  if (schema.weights) fmt::format_to(put, "{} ", batch.weights[example]);
  FLUX_RETURN_IF_ERROR(check_name("vw", name, " \t\r|"));
  if (!name.empty()) fmt::format_to(put, "'{} ", name);
  for (uint32_t s = 0; s < batch.slots; ++s) {
    const auto [begin, end] = keys_of(batch, example, s);
    if (begin < end) fmt::format_to(put, "|{} ", schema.slots[s]);
    for (size_t k = begin; k < end; ++k) {
      fmt::format_to(put, "{}", batch.keys[k]);
      if (value_of(batch, k) != 1) fmt::format_to(put, ":{}", value_of(batch, k));
      *out += ' ';
    }
  }
  if (batch.dense > 0 || batch.slots == 0) *out += "|dense ";
  for (uint32_t d = 0; d < batch.dense; ++d)
    if (dense_of(batch, example, d) != 0)
      fmt::format_to(put, "{}:{} ", schema.dense[d], dense_of(batch, example, d));
  if (out->find('|', out->rfind('\n') + 1) == std::string::npos)
    fmt::format_to(put, "|{} ", schema.slots[0]);  // an example without a key
  out->pop_back();
  return Status::ok();
}

std::string csv_head(const WrittenSchema& schema) {
  std::vector<std::string> names = schema.labels;
  if (schema.weights) names.emplace_back("weight");
  if (schema.groups) names.emplace_back("sid");
  if (schema.names) names.emplace_back("id");
  names.insert(names.end(), schema.slots.begin(), schema.slots.end());
  names.insert(names.end(), schema.dense.begin(), schema.dense.end());
  return join(names, ",");
}

Status csv_holds(const WrittenSchema& schema) {
  for (const auto* names : {&schema.labels, &schema.slots, &schema.dense})
    for (const std::string& name : *names)
      if (name.find_first_of(",\"\r\n") != std::string::npos || name == "weight" || name == "id" ||
          name == "sid")
        return cannot("csv", fmt::format("a column of the name '{}'", name));
  return Status::ok();
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

Status append_csv(const WrittenSchema& schema, const Batch& batch, uint32_t example,
                  std::string_view name, std::string* out) {
  const auto put = std::back_inserter(*out);
  for (size_t l = 0; l < schema.labels.size(); ++l)
    fmt::format_to(put, "{}{}", l == 0 ? "" : ",", batch.labels[l * batch.size + example]);
  if (schema.weights) fmt::format_to(put, ",{}", batch.weights[example]);
  if (schema.groups) fmt::format_to(put, ",{}", batch.groups[example]);
  if (schema.names) *out += "," + csv_cell(name);
  for (uint32_t s = 0; s < batch.slots; ++s) {
    const auto [begin, end] = keys_of(batch, example, s);
    *out += ',';
    for (size_t k = begin; k < end; ++k) {
      fmt::format_to(put, "{}{}", k == begin ? "" : "|", batch.keys[k]);
      if (value_of(batch, k) != 1) fmt::format_to(put, ":{}", value_of(batch, k));
    }
  }
  for (uint32_t d = 0; d < batch.dense; ++d) {
    *out += ',';
    const float value = dense_of(batch, example, d);
    if (value != 0) fmt::format_to(put, "{}", value);
  }
  return Status::ok();
}

Status criteo_holds(const WrittenSchema& schema) {
  DataOptions criteo;
  const RecordSchema fixed = schema_of(criteo);
  if (schema.labels == fixed.labels && schema.slots == fixed.slots && schema.dense == fixed.dense &&
      !schema.weights && !schema.groups && !schema.values)
    return Status::ok();
  return cannot("criteo_tsv", "this data: it has the label, I1 to I13 and C1 to C26");
}

Status append_criteo(const WrittenSchema& schema, const Batch& batch, uint32_t example,
                     std::string_view /*name*/, std::string* out) {
  const auto put = std::back_inserter(*out);
  const float label = batch.labels[example];
  if (label != 0 && label != 1)
    return cannot("criteo_tsv", fmt::format("a label of {}; it has 0 and 1", label));
  fmt::format_to(put, "{}", label);
  for (uint32_t d = 0; d < batch.dense; ++d)
    fmt::format_to(put, "\t{}", dense_of(batch, example, d));
  for (uint32_t s = 0; s < batch.slots; ++s) {
    const auto [begin, end] = keys_of(batch, example, s);
    const uint64_t key = begin < end ? batch.keys[begin] : criteo_missing_key(s);
    const bool missing = key == criteo_missing_key(s);
    if (end - begin > 1 || (!missing && key != criteo_key(s, static_cast<uint32_t>(key))))
      return cannot("criteo_tsv", fmt::format("the keys of slot '{}': they are no tokens of it",
                                              schema.slots[s]));
    *out += '\t';
    if (!missing) fmt::format_to(put, "{:08x}", static_cast<uint32_t>(key));
  }
  return Status::ok();
}

constexpr TextWriter kWriters[] = {
    {"criteo_tsv", TextWriter::kNoNames, false, criteo_holds, nullptr, append_criteo, nullptr},
    {"feasign", TextWriter::kNamesInLine, true, holds_all, nullptr, append_feasign, nullptr},
    {"multislot", TextWriter::kNameColumn, true, multislot_holds, nullptr, append_multislot,
     multislot_job},
    {"libsvm", TextWriter::kNoNames, true, libsvm_holds, nullptr, append_libsvm, nullptr},
    {"libffm", TextWriter::kNoNames, false, libffm_holds, nullptr, append_libffm, nullptr},
    {"vw", TextWriter::kNamesInLine, false, vw_holds, nullptr, append_vw, nullptr},
    {"csv", TextWriter::kNameColumn, true, csv_holds, csv_head, append_csv, nullptr},
};

}  // namespace

const TextWriter* find_text_writer(const std::string& format) {
  const auto* at = std::find_if(std::begin(kWriters), std::end(kWriters),
                                [&](const TextWriter& writer) { return format == writer.format; });
  return at == std::end(kWriters) ? nullptr : at;
}

std::vector<std::string> text_writer_names() {
  std::vector<std::string> out;
  for (const TextWriter& writer : kWriters) out.emplace_back(writer.format);
  return out;
}

std::string written_data_section(const WrittenSchema& schema, const std::string& format,
                                 const std::string& path) {
  std::string text = fmt::format("data:\n  format: {}\n  train: {}\n", format, yaml_list({path}));
  if (format == "criteo_tsv") return text;
  const TextWriter* writer = find_text_writer(format);
  if (writer != nullptr || format == "parquet") text += "  raw_keys: true\n";
  if (!schema.many_keys) text += "  one_key: true\n";
  const auto list = [&](const char* name, const std::vector<std::string>& names) {
    if (!names.empty()) text += fmt::format("  {}: {}\n", name, yaml_list(names));
  };
  list("labels", schema.labels);
  list("dense", schema.dense);
  if (!schema.slots.empty()) text += "  slots:\n";
  for (const std::string& slot : schema.slots)
    text += fmt::format("    - {{name: {}{}}}\n", yaml_word(slot),
                        schema.values ? ", values: true" : "");
  if (schema.weights) text += "  weights: true\n";
  const bool by_slot = writer != nullptr && !writer->groups && !schema.group_slot.empty();
  if (schema.groups)
    text += fmt::format("  group: {}\n", by_slot ? yaml_word(schema.group_slot) : "sid");
  if (writer != nullptr && writer->job != nullptr) text += writer->job(schema);
  return text;
}

std::string features_section(std::span<const FeatureOptions> features) {
  std::string text = features.empty() ? "" : "  features:\n";
  const FeatureOptions usual;
  for (const FeatureOptions& f : features) {
    text +=
        fmt::format("    - {{name: {}, op: {}, of: {}", yaml_word(f.name), f.op, yaml_list(f.of));
    const auto put = [&](const char* name, const auto& value, const auto& otherwise) {
      if (value != otherwise) text += fmt::format(", {}: {}", name, value);
    };
    put("keys", f.keys.empty() ? f.keys : yaml_word(f.keys), usual.keys);
    put("modulus", f.modulus, usual.modulus);
    put("boundaries", number_list(f.boundaries), number_list({}));
    put("quantiles", number_list(f.quantiles), number_list({}));
    put("log_base", f.log_base, usual.log_base);
    put("buckets", f.buckets, usual.buckets);
    put("limit", f.limit, usual.limit);
    put("min", f.min, usual.min);
    put("max", f.max, usual.max);
    put("mean", f.mean, usual.mean);
    put("deviation", f.deviation, usual.deviation);
    text += "}\n";
  }
  return text;
}

}  // namespace flux
