// flux data head, stats, validate, convert: looking at data, and writing it another way.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "flux/base/text.h"
#include "flux/data/blocks/writer.h"
#include "flux/data/criteo.h"
#include "flux/data/parquet/writer.h"
#include "flux/data/piecewise_file.h"
#include "flux/data/text/writers.h"
#include "flux/data/tools/data_stats.h"
#include "flux/data/tools/guess_format.h"
#include "flux/data/tools/record_text.h"
#include "flux/data/tools/whole_data.h"
#include "flux/job/job.h"
#include "flux/main/commands.h"
#include "flux/main/found_format.h"
#include "flux/main/not_an_input.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

// The files, and how they are read: as a job says, or as they look.
struct Source {
  std::vector<std::string> files;
  DataOptions options;
  unsigned threads = 1;
};

Result<Source> find_source(const DataArguments& arguments) {
  Source out;
  out.threads = arguments.threads == 0 ? std::max(1U, std::thread::hardware_concurrency())
                                       : arguments.threads;
  std::vector<std::string> patterns = arguments.files;
  if (!arguments.job.empty()) {
    std::vector<Override> overrides;
    for (const std::string& text : arguments.sets) {
      FLUX_ASSIGN_OR_RETURN(Override one, parse_override(text));
      overrides.push_back(std::move(one));
    }
    FLUX_ASSIGN_OR_RETURN(const Job job, load_job_with_format(arguments.job, std::move(overrides)));
    out.options = job.data;
    if (patterns.empty())
      for (const PassSpec& pass : job.passes)
        patterns.insert(patterns.end(), pass.train.begin(), pass.train.end());
  }
  if (patterns.empty()) return invalid("name the files, or a job that does: --job JOB");
  FLUX_ASSIGN_OR_RETURN(out.files, expand_globs(patterns));
  if (arguments.job.empty()) {
    FLUX_ASSIGN_OR_RETURN(out.options, guess_data_options(out.files[0]));
  }
  return out;
}

// The token as the line has it.
void criteo_key_text(uint64_t key, std::string* out) {
  if (key & (1ULL << 48))
    *out += "-";
  else
    *out += fmt::format("{:x}", static_cast<uint32_t>(key));
}

Status head(const DataArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(Source source, find_source(arguments));
  // As the lines have them; the keys of the others are what they are.
  const std::string& format = source.options.format;
  source.options.raw_keys = format != "criteo_tsv" && format != "blocks";
  FLUX_ASSIGN_OR_RETURN(const WholeData data,
                        WholeData::open(source.files, source.options, source.threads));
  const RecordSchema schema = data.schema();
  const KeyText key_text = format == "criteo_tsv" ? criteo_key_text : nullptr;
  uint64_t left = arguments.records;
  std::string text;
  const Status status = data.read([&](const Batch& batch) -> Status {
    for (uint32_t i = 0; i < batch.size && left > 0; ++i, --left) {
      append_record_text(schema, batch, i, key_text, &text);
      text += '\n';
    }
    return left > 0 ? Status::ok() : error(Code::kCancelled, "enough");
  });
  if (!status.is_ok() && status.code() != Code::kCancelled) return status;
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Status::ok();
}

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
  FLUX_ASSIGN_OR_RETURN(const auto file, PiecewiseFile::create(path));
  PiecePacker packer(file->packing());
  std::string text;
  const auto flush = [&]() -> Status {
    FLUX_ASSIGN_OR_RETURN(const PiecePacker::Piece piece, packer.pack(text));
    *bytes += piece.bytes.size();
    const Status status = file->append(piece);  // a plain piece is the text itself
    text.clear();
    return status;
  };
  if (writer.head != nullptr) text = writer.head(schema) + "\n";
  const WholeData::NamedSink sink = [&](const Batch& batch, const auto& names) -> Status {
    for (uint32_t i = 0; i < batch.size; ++i) {
      const std::string_view name = names.empty() ? std::string_view() : names[i];
      FLUX_RETURN_IF_ERROR(writer.append(schema, batch, i, name, &text));
      text += '\n';
    }
    return flush();
  };
  FLUX_RETURN_IF_ERROR(writer.names == TextWriter::kNoNames
                           ? data.read([&](const Batch& batch) { return sink(batch, {}); })
                           : data.read_named(sink));
  if (!text.empty()) FLUX_RETURN_IF_ERROR(flush());
  return file->commit();
}

Status convert(const DataArguments& arguments) {
  std::vector<std::string> targets = text_writer_names();
  targets.insert(targets.begin(), {"blocks", "parquet"});
  if (std::find(targets.begin(), targets.end(), arguments.to) == targets.end())
    return invalid("--to {}: allowed: {}{}", arguments.to, join(targets, ", "),
                   did_you_mean(arguments.to, targets));
  FLUX_ASSIGN_OR_RETURN(const Source source, find_source(arguments));
  FLUX_RETURN_IF_ERROR(not_an_input(arguments.out, source.files));
  FLUX_RETURN_IF_ERROR(make_folders(parent_folder(arguments.out)));
  const auto begin = std::chrono::steady_clock::now();
  FLUX_ASSIGN_OR_RETURN(const WholeData data,
                        WholeData::open(source.files, source.options, source.threads));
  uint64_t bytes = 0;
  const TextWriter* writer = find_text_writer(arguments.to);
  WrittenSchema schema = {data.schema()};
  if (writer != nullptr && writer->names == TextWriter::kNameColumn) {
    FLUX_ASSIGN_OR_RETURN(schema.names, data.has_names());
  }
  const auto write = arguments.to == "parquet" ? to_parquet : to_blocks;
  FLUX_RETURN_IF_ERROR(writer == nullptr ? write(data, arguments.out, &bytes)
                                         : to_text(data, *writer, schema, arguments.out, &bytes));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print(stderr, "{}: {} records, {}, in {:.1f} s\n", arguments.out,
             with_commas(data.records()), human_bytes(bytes), took.count());
  fmt::print("{}", written_data_section(schema, arguments.to, arguments.out));
  return Status::ok();
}

int exit_code_of(const Status& status) {
  return status.is_ok() ? 0 : report(status);
}

}  // namespace

int data_head_command(const DataArguments& arguments) {
  return exit_code_of(head(arguments));
}
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
