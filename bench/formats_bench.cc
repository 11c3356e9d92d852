// How fast files of each format become batches, on one core: the same examples in every format that
// can hold them; libsvm gets their keys alone, in one slot.
// usage: formats_bench [examples] [directory for the generated files] [format]
// Times are CPU time of the calling thread, best of several rounds, data in the page cache; reading
// a block, finding its lines and parsing them are all in it.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "flux/data/blocks/writer.h"
#include "flux/data/criteo_gen.h"
#include "flux/data/feasign_gen.h"
#include "flux/data/text/writers.h"
#include "flux/data/tools/guess_format.h"
#include "flux/data/tools/whole_data.h"

namespace flux {
namespace {

constexpr int kRounds = 5;

double cpu_seconds() {
  timespec t = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void must(const Status& status) {
  if (status.is_ok()) return;
  std::fprintf(stderr, "formats_bench: %s\n", status.message().c_str());
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result.is_ok()) must(result.status());
  return std::move(result).value();
}

// Seconds to read all of a file once, as batches of 1000.
double read_seconds(const std::string& path, const DataOptions& options) {
  const Geometry geometry = must(Dataset::scan({&path, 1}, options, 1));
  const auto data = must(Dataset::open(geometry, options));
  Batch batch;
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = cpu_seconds();
    for (uint32_t b = 0; b < geometry.blocks.size(); ++b) {
      const auto block = must(data->open_block(b, 0));
      for (uint32_t i = 0; i < geometry.batches_in(b); ++i) must(block->read_batch(i, &batch));
    }
    best = std::min(best, cpu_seconds() - begin);
  }
  return best;
}

// How a job reads what a writer wrote.
DataOptions written_options(const RecordSchema& schema, const std::string& format) {
  DataOptions out;
  out.format = format;
  if (format == "criteo_tsv") return out;
  out.labels = schema.labels;
  out.dense = schema.dense;
  out.raw_keys = format != "blocks";
  for (const std::string& slot : schema.slots) {
    out.slots.push_back({slot, ""});
    out.slots.back().values = schema.values;
  }
  return out;
}

// `read` gives a sink every batch.
void write_text(const WrittenSchema& schema, const std::string& format,
                const std::function<Status(const WholeData::Sink&)>& read,
                const std::string& path) {
  const TextWriter* writer = find_text_writer(format);
  std::ofstream out(path, std::ios::binary);
  if (writer->head != nullptr) out << writer->head(schema) << '\n';
  must(read([&](const Batch& batch) -> Status {
    std::string text;
    for (uint32_t i = 0; i < batch.size; ++i) {
      FLUX_RETURN_IF_ERROR(writer->append(schema, batch, i, "", &text));
      text += '\n';
    }
    out << text;
    return Status::ok();
  }));
}

void write(const WholeData& data, const std::string& format, const std::string& path) {
  const WrittenSchema schema = {data.schema()};
  if (find_text_writer(format) != nullptr)
    return write_text(
        schema, format, [&](const WholeData::Sink& sink) { return data.read(sink); }, path);
  const auto blocks = must(BlockFileWriter::create(path, schema));
  must(data.read([&](const Batch& batch) { return blocks->add(batch); }));
  must(blocks->finish());
}

void report(const std::string& name, const std::string& path, const DataOptions& options,
            uint64_t records, std::string* json) {
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  const auto examples = static_cast<double>(records);
  const double seconds = read_seconds(path, options);
  fmt::print("{:<12}{:<12}{:>8.0f}{:>12.1f}{:>14.0f}{:>14.1f}\n", name, options.format,
             bytes / seconds / 1e6, seconds * 1e9 / examples, examples / seconds, bytes / examples);
  *json += fmt::format(
      ", \"{} {}\": {{\"mb_per_s\": {:.1f}, \"ns_per_example\": {:.2f}, \"examples_per_s\": "
      "{:.0f}}}",
      name, options.format, bytes / seconds / 1e6, seconds * 1e9 / examples, examples / seconds);
}

// One set of examples in every format; `source` is as `options` say.
void run_set(const std::string& name, const std::string& source, const DataOptions& options,
             const std::string& only, std::string* json) {
  const WholeData data = must(WholeData::open({source}, options, 1));
  std::vector<std::string> formats = text_writer_names();
  formats.emplace_back("blocks");
  for (const std::string& format : formats) {
    if (!only.empty() && format != only) continue;
    const TextWriter* writer = find_text_writer(format);
    if (writer != nullptr && !writer->can_hold({data.schema()}).is_ok()) continue;
    const std::string path = source + "." + format;
    write(data, format, path);
    report(name, path, written_options(data.schema(), format), data.records(), json);
    std::filesystem::remove(path);
  }
}

// The examples with all their keys in one slot and no numbers.
Batch in_one_slot(const Batch& batch) {
  Batch out;
  out.size = batch.size;
  out.slots = 1;
  out.labels = batch.labels;
  out.keys = batch.keys;
  for (uint32_t i = 0; i <= batch.size; ++i)
    out.begin.push_back(batch.begin.empty() ? i * batch.slots
                                            : batch.begin[size_t{i} * batch.slots]);
  return out;
}

// libsvm, which has one slot and no dense features: the keys of `source` in it.
void run_libsvm(const std::string& name, const std::string& source, const DataOptions& options,
                const std::string& only, std::string* json) {
  const std::string format = "libsvm";
  if (!only.empty() && only != format) return;
  const WholeData data = must(WholeData::open({source}, options, 1));
  WrittenSchema schema;
  schema.labels = data.schema().labels;
  schema.slots = {"features"};
  const std::string path = source + "." + format;
  write_text(
      schema, format,
      [&](const WholeData::Sink& sink) {
        return data.read([&](const Batch& batch) { return sink(in_one_slot(batch)); });
      },
      path);
  report(name, path, written_options(schema, format), data.records(), json);
  std::filesystem::remove(path);
}

void run(uint64_t examples, const std::string& directory, const std::string& only) {
  fmt::print("{:<12}{:<12}{:>8}{:>12}{:>14}{:>14}\n", "one core", "format", "MB/s", "ns/example",
             "examples/s", "bytes/example");
  std::string json;
  const std::string criteo = directory + "/formats_bench.tsv";
  must(generate_criteo({.examples = examples}, criteo, 1, {}));
  run_set("criteo", criteo, DataOptions(), only, &json);
  run_libsvm("criteo", criteo, DataOptions(), only, &json);
  std::filesystem::remove(criteo);
  const std::string sequence = directory + "/formats_bench.txt";
  must(generate_feasign({"sequence", examples, 1, 7}, sequence, 1, {}));
  std::string note;
  const DataOptions guessed = must(guess_data_options(sequence, &note));
  if (only.empty() || only == "feasign") report("short keys", sequence, guessed, examples, &json);
  run_set("sequence", sequence, guessed, only, &json);
  run_libsvm("sequence", sequence, guessed, only, &json);
  std::filesystem::remove(sequence);
  fmt::print("{{\"bench\": \"formats\"{}}}\n", json);
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  const uint64_t examples = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000;
  const std::string directory =
      argc > 2 ? argv[2] : std::filesystem::temp_directory_path().string();
  flux::run(examples == 0 ? 100000 : examples, directory, argc > 3 ? argv[3] : "");
  return 0;
}
