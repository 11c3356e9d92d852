#include "flux/data/tools/first_records.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "flux/data/blocks/dataset.h"
#include "flux/data/format.h"
#include "flux/data/options.h"
#include "flux/data/sources/line_stream.h"
#include "flux/data/text/csv.h"
#include "flux/data/text/example_names.h"
#include "flux/data/tools/whole_data.h"

namespace flux {
namespace {

constexpr uint32_t kLinesAtOnce = 1024;

using Names = std::vector<std::string>;

// A block file is opened chunk by chunk, as each has a check sum of its own.
Result<WholeData> open_others(const std::string& path, DataOptions options, uint64_t records) {
  if (options.format != "blocks") return WholeData::open({path}, std::move(options), 1);
  options.batch_size = kLinesAtOnce;
  const std::string paths[] = {path};
  FLUX_ASSIGN_OR_RETURN(Geometry geometry, scan_block_files(paths, options, nullptr));
  FLUX_ASSIGN_OR_RETURN(geometry.blocks, first_chunks(path, records));
  return WholeData::open_cut(std::move(geometry), std::move(options), 1);
}

Status no_record(const std::string& path) {
  return invalid("{}: holds no record; remove it from the data or fill it", path);
}

}  // namespace

Result<FirstRecords> FirstRecords::open(std::vector<std::string> files,
                                        const DataOptions& options) {
  FirstRecords out;
  out.files_ = std::move(files);
  out.options_ = as_written(options);
  out.options_.batch_size = 1;
  FLUX_RETURN_IF_ERROR(check_data_options(out.options_));
  FLUX_RETURN_IF_ERROR(check_paths(out.files_));
  if (!has_lines(out.options_)) return out;
  FLUX_ASSIGN_OR_RETURN(const DataOptions known, with_csv_header(out.files_, out.options_));
  FLUX_ASSIGN_OR_RETURN(out.format_, find_format(known.format)->lines(known));
  return out;
}

Result<uint64_t> FirstRecords::read(size_t file, uint64_t records, const Sink& sink) const {
  return format_ != nullptr ? read_lines(files_[file], records, sink)
                            : read_others(files_[file], records, sink);
}

Result<uint64_t> FirstRecords::read_lines(const std::string& path, uint64_t records,
                                          const Sink& sink) const {
  FLUX_ASSIGN_OR_RETURN(const auto lines, LineStream::open(path, options_.pipe));
  FLUX_RETURN_IF_ERROR(lines->next(header_lines_of(options_)).status());
  const auto pool = std::make_shared<BufferPool>();
  Batch batch;
  uint64_t done = 0;
  while (done < records) {
    const uint64_t first_line = lines->lines() + 1;
    FLUX_ASSIGN_OR_RETURN(const std::string_view text,
                          lines->next(std::min<uint64_t>(records - done, kLinesAtOnce)));
    if (text.empty()) break;
    DataBlock block;
    block.end = text.size();
    block.first_record = done;
    block.records = static_cast<uint32_t>(lines->lines() + 1 - first_line);
    const auto reader = format_->make({block, 1, path, lines->packed(), first_line, 0}, pool);
    std::copy(text.begin(), text.end(), reader->text());
    std::vector<uint32_t> order(block.records);
    std::iota(order.begin(), order.end(), 0U);
    FLUX_RETURN_IF_ERROR(reader->prepare(std::move(order)));
    const auto* names = dynamic_cast<const ExampleNames*>(reader.get());
    for (uint32_t i = 0; i < block.records; ++i) {
      const Status refused = reader->read_batch(i, &batch);
      const bool named = names != nullptr && refused.is_ok();
      FLUX_RETURN_IF_ERROR(sink(refused, batch, named ? names->names_of(i) : Names()));
    }
    done += block.records;
  }
  if (done == 0 && records > 0) return no_record(path);
  return done;
}

Result<uint64_t> FirstRecords::read_others(const std::string& path, uint64_t records,
                                           const Sink& sink) const {
  FLUX_ASSIGN_OR_RETURN(const WholeData data, open_others(path, options_, records));
  uint64_t done = 0;
  Status of_sink;
  const Status status = data.read_first(records, [&](const Batch& batch) {
    done += batch.size;
    return of_sink = sink(Status::ok(), batch, Names());
  });
  FLUX_RETURN_IF_ERROR(of_sink);
  if (!status.is_ok()) {
    ++done;
    FLUX_RETURN_IF_ERROR(sink(status, Batch(), Names()));
  }
  return std::min(done, records);
}

}  // namespace flux
