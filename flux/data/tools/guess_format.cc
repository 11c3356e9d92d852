#include "flux/data/tools/guess_format.h"

#include "flux/base/text.h"
#include "flux/data/blocks/block_file.h"
#include "flux/data/file_head.h"
#include "flux/data/line_error.h"
#include "flux/data/lines.h"
#include "flux/data/parquet/column_map.h"
#include "flux/data/parquet/parquet_file.h"
#include "flux/data/tools/guess_text.h"

namespace flux {
namespace {

constexpr size_t kLookBytes = 1 << 20;

DataOptions blocks_options(const RecordSchema& schema) {
  DataOptions out;
  out.format = "blocks";
  out.labels = schema.labels;
  out.dense = schema.dense;
  out.weights = schema.weights;
  out.one_key = !schema.many_keys;
  for (const std::string& slot : schema.slots) {
    out.slots.push_back({slot, ""});
    out.slots.back().values = schema.values;
  }
  out.group = schema.groups ? "sid" : "";
  return out;
}

// The whole lines of the first part of a file; of a single longer line, its first part.
Result<std::string> first_lines(const std::string& path) {
  FLUX_ASSIGN_OR_RETURN(std::string text, read_file_head(path, kLookBytes));
  const size_t end = text.rfind('\n');
  if (end != std::string::npos) text.resize(end);
  text.erase(0, byte_order_mark_bytes(text));
  return text;
}

}  // namespace

Result<DataOptions> guess_data_options(const std::string& path, std::string* note) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  if (BlockFile::looks_like_one(file)) {
    FLUX_ASSIGN_OR_RETURN(const auto blocks, BlockFile::open(path));
    return blocks_options(blocks->schema());
  }
  if (ParquetFile::looks_like_one(file)) {
    FLUX_ASSIGN_OR_RETURN(const auto parquet, ParquetFile::open(path));
    FLUX_ASSIGN_OR_RETURN(DataOptions out, guess_parquet_options(path, parquet->columns(), note));
    out.raw_keys = parquet->is_own();
    return out;
  }
  FLUX_ASSIGN_OR_RETURN(const std::string text, first_lines(path));
  if (text.empty()) return invalid("{}: holds no record", path);
  const std::vector<std::string> lines = split(text, '\n');
  if (auto options = guess_text_options(lines)) {
    options->raw_keys = has_table_keys(*options, lines);
    return *std::move(options);
  }
  const bool cells = lines[0].find_first_of(",;\t") != std::string::npos;
  return invalid(
      "{}: its format is not clear; its first line begins with {}\nname a job whose data section "
      "says it: --job JOB{}",
      path, shown_field(std::string_view(lines[0]).substr(0, 40)),
      cells ? " (of csv lines without a header: format: csv, csv: {header: false}, columns: [...])"
            : "");
}

}  // namespace flux
