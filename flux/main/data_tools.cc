// flux data stats, validate, convert: counting and checking data, and writing it another way.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "flux/base/text.h"
#include "flux/data/blocks/writer.h"
#include "flux/data/line_error.h"
#include "flux/data/parquet/writer.h"
#include "flux/data/sources/packing.h"
#include "flux/data/text/writers.h"
#include "flux/data/tools/data_stats.h"
#include "flux/data/tools/whole_data.h"
#include "flux/job/value.h"
#include "flux/main/commands.h"
#include "flux/main/data_source.h"
#include "flux/main/not_an_input.h"
#include "flux/main/text_out.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

using Source = DataSource;

Status stats(const DataArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const Source source, find_source(arguments));
  FLUX_ASSIGN_OR_RETURN(const WholeData data,
                        WholeData::open(source.files, source.options, source.threads));
  DataStats stats(data.schema());
  FLUX_RETURN_IF_ERROR(data.read([&](const Batch& batch) {
    stats.add(batch);
    return Status::ok();
  }));
  if (arguments.json)
    fmt::print("{}\n", stats.json());
  else
    fmt::print("{} file(s), format {}, {}", source.files.size(), source.options.format,
               stats.text());
  return Status::ok();
}

Status validate(const DataArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const Source source, find_source(arguments));
  FLUX_ASSIGN_OR_RETURN(const WholeData data,
                        WholeData::open(source.files, source.options, source.threads));
  uint64_t bad = 0;
  FLUX_RETURN_IF_ERROR(data.check([&](const Status& why) {
    if (++bad <= arguments.records) fmt::print(stderr, "{}\n", why.message());
    if (bad == arguments.records + 1) fmt::print(stderr, "... and more\n");
  }));
  if (bad > 0)
    return invalid("{} of {} records are bad (format {})", with_commas(bad),
                   with_commas(data.records()), source.options.format);
  fmt::print("{} record(s) in {} file(s) are good (format {})\n", with_commas(data.records()),
             source.files.size(), source.options.format);
  return Status::ok();
}

Status to_blocks(const WholeData& data, const std::string& path, uint64_t* bytes) {
  FLUX_ASSIGN_OR_RETURN(const auto writer, BlockFileWriter::create(path, data.schema()));
  FLUX_RETURN_IF_ERROR(data.read([&](const Batch& batch) { return writer->add(batch); }));
  FLUX_RETURN_IF_ERROR(writer->finish());
  *bytes = writer->bytes();
  return Status::ok();
}

Status to_parquet(const WholeData& data, const std::string& path, uint64_t* bytes) {
  FLUX_ASSIGN_OR_RETURN(const auto writer, ParquetWriter::create(path, data.schema()));
  FLUX_RETURN_IF_ERROR(data.read([&](const Batch& batch) { return writer->add(batch); }));
  FLUX_RETURN_IF_ERROR(writer->finish());
  *bytes = writer->bytes();
  return Status::ok();
}

Status to_text(const WholeData& data, const TextWriter& writer, const WrittenSchema& schema,
               const std::string& path, uint64_t* bytes) {
  FLUX_RETURN_IF_ERROR(writer.can_hold(schema));
  FLUX_ASSIGN_OR_RETURN(const auto out, TextOut::create(path));
  std::string text;
  if (writer.head != nullptr) FLUX_RETURN_IF_ERROR(out->write(writer.head(schema) + "\n"));
  const WholeData::NamedSink sink = [&](const Batch& batch, const auto& names) -> Status {
    text.clear();
    for (uint32_t i = 0; i < batch.size; ++i) {
      const std::string_view name = names.empty() ? std::string_view() : names[i];
      FLUX_RETURN_IF_ERROR(writer.append(schema, batch, i, name, &text));
      text += '\n';
    }
    return out->write(text);
  };
  FLUX_RETURN_IF_ERROR(writer.names == TextWriter::kNoNames
                           ? data.read([&](const Batch& batch) { return sink(batch, {}); })
                           : data.read_named(sink));
  FLUX_RETURN_IF_ERROR(out->finish());
  *bytes = out->bytes();
  return Status::ok();
}

// What was converted must be readable by a job, which has its own idea of names.
Status check_job_names(const RecordSchema& schema) {
  const std::pair<const char*, const std::vector<std::string>*> all[] = {
      {"label", &schema.labels}, {"slot", &schema.slots}, {"dense feature", &schema.dense}};
  for (const auto& [what, names] : all)
    for (const std::string& name : *names)
      if (!is_job_name(name))
        return invalid(
            "the {} {}: no job could name it; names have at most 64 letters, digits, '_' and '-'\n"
            "rename it in the data, or read it with a job (--job) that calls it otherwise: csv and "
            "multislot go by data.columns, not by names",
            what, shown_field(name));
  return Status::ok();
}

Status check_out(const std::string& out, const std::string& to) {
  if (out == kStandardOutput && find_text_writer(to) == nullptr)
    return invalid(
        "--out -: {} cannot be written to standard output, only lines can ({}); name a "
        "file",
        to, join(text_writer_names(), ", "));
  const Packing packing = packing_by_name(out);
  if (packing == Packing::kPlain || find_text_writer(to) != nullptr) return Status::ok();
  return invalid(
      "--out {}: {} is not written as {}: nothing could read it; name the file otherwise", out, to,
      packing_name(packing));
}

// Without a job nobody says what keys are, and whether two slots mean the same by one.
void tell_of_keys(const DataArguments& arguments, const Source& source) {
  const DataOptions& options = source.options;
  const bool made = options.format != "criteo_tsv" && options.format != "blocks";
  if (!arguments.job.empty() || !made) return;
  if (options.raw_keys && options.format != "parquet")  // whose files say it
    fmt::print(stderr,
               "note: the keys of {} are taken as they are (raw_keys: true), as they are large as "
               "those that flux data convert writes; if they are ids of your own, name a job that "
               "reads them: --job JOB\n",
               source.files[0]);
  if (options.raw_keys || options.slots.size() < 2) return;
  fmt::print(stderr,
             "note: without --job every slot gets keys of its own; if a job is to share them "
             "(slots with the same `keys`), convert with that job: --job JOB\n");
}

// The slot that is the job's group and is written, too.
std::string group_slot_of(const DataOptions& options) {
  const std::vector<std::string> slots = schema_of(options).slots;
  const bool written = std::find(slots.begin(), slots.end(), options.group) != slots.end();
  return written ? options.group : "";
}

// What of a job's data section is not in the files, but makes its network what it is.
std::string section_of_job(const DataArguments& arguments, const DataOptions& options) {
  std::string text;
  if (options.dense_transform != DataOptions().dense_transform)
    text += fmt::format("  dense_transform: {}\n", options.dense_transform);
  if (arguments.job.empty()) return text;
  return text + fmt::format("  batch: {}\n", options.batch_size) +
         features_section(options.features);
}

Status convert(const DataArguments& arguments) {
  std::vector<std::string> targets = text_writer_names();
  targets.insert(targets.begin(), {"blocks", "parquet"});
  if (std::find(targets.begin(), targets.end(), arguments.to) == targets.end())
    return invalid("--to {}: allowed: {}{}", arguments.to, join(targets, ", "),
                   did_you_mean(arguments.to, targets));
  FLUX_RETURN_IF_ERROR(check_out(arguments.out, arguments.to));
  FLUX_ASSIGN_OR_RETURN(const Source source, find_source(arguments));
  FLUX_RETURN_IF_ERROR(check_job_names(schema_of(source.options)));
  tell_of_keys(arguments, source);
  const bool to_screen = arguments.out == kStandardOutput;
  if (!to_screen) {
    FLUX_RETURN_IF_ERROR(not_an_input(arguments.out, source.files));
    FLUX_RETURN_IF_ERROR(make_folders(parent_folder(arguments.out)));
  }
  const auto begin = std::chrono::steady_clock::now();
  FLUX_ASSIGN_OR_RETURN(const WholeData data,
                        WholeData::open(source.files, source.options, source.threads));
  uint64_t bytes = 0;
  const TextWriter* writer = find_text_writer(arguments.to);
  WrittenSchema schema = {data.schema(), false, group_slot_of(source.options)};
  if (writer != nullptr && writer->names == TextWriter::kNameColumn) {
    FLUX_ASSIGN_OR_RETURN(schema.names, data.has_names());
  }
  const auto write = arguments.to == "parquet" ? to_parquet : to_blocks;
  FLUX_RETURN_IF_ERROR(writer == nullptr ? write(data, arguments.out, &bytes)
                                         : to_text(data, *writer, schema, arguments.out, &bytes));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print(stderr, "{}: {} records, {}, in {:.1f} s\n",
             to_screen ? "standard output" : arguments.out, with_commas(data.records()),
             human_bytes(bytes), took.count());
  std::FILE* const told = to_screen ? stderr : stdout;  // how a job reads it
  fmt::print(told, "{}{}", written_data_section(schema, arguments.to, arguments.out),
             section_of_job(arguments, source.options));
  return Status::ok();
}

int exit_code_of(const Status& status) {
  return status.is_ok() ? 0 : report(status);
}

}  // namespace

int data_stats_command(const DataArguments& arguments) {
  return exit_code_of(stats(arguments));
}
int data_validate_command(const DataArguments& arguments) {
  return exit_code_of(validate(arguments));
}
int data_convert_command(const DataArguments& arguments) {
  return exit_code_of(convert(arguments));
}

}  // namespace flux
