#include "flux/data/bad_records.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "flux/base/parallel.h"
#include "flux/base/text.h"
#include "flux/data/one_by_one.h"

namespace flux {
namespace {

Status read_all(const BlockReader& reader, uint32_t batches) {
  Batch batch;
  for (uint32_t i = 0; i < batches; ++i) FLUX_RETURN_IF_ERROR(reader.read_batch(i, &batch));
  return Status::ok();
}

// A block once more, as batches of one.
Result<std::unique_ptr<BlockReader>> open_singly(Geometry one, DataOptions options,
                                                 uint32_t block) {
  one.blocks = {one.blocks[block]};
  one.batch_size = 1;
  one.blocks[0].content = 0;  // it was by batches
  options.batch_size = 1;
  FLUX_ASSIGN_OR_RETURN(const auto again, Dataset::open(one, options));
  return again->open_block(0, 0);
}

// A block in which nothing is good has no batch: its lines go to a neighbour in the same file.
// Those of a file without any good block are only counted.
void drop_empty_blocks(Geometry* geometry) {
  std::vector<DataBlock> kept;
  std::vector<uint32_t> waiting;  // lines before the first good block of a file
  uint64_t waiting_begin = 0;
  uint32_t file = 0;
  const auto end_file = [&] {
    geometry->bad_before += waiting.size();
    waiting.clear();
  };
  for (DataBlock& block : geometry->blocks) {
    if (block.file != file) end_file();
    file = block.file;
    if (block.records == 0 && !kept.empty() && kept.back().file == file) {
      const auto lines = static_cast<uint32_t>(kept.back().lines());
      for (const uint32_t line : block.bad) kept.back().bad.push_back(lines + line);
      kept.back().end = block.end;
      kept.back().content = 0;
    } else if (block.records == 0) {
      if (waiting.empty()) waiting_begin = block.begin;
      for (size_t i = 0; i < block.bad.size(); ++i)
        waiting.push_back(static_cast<uint32_t>(waiting.size()));
    } else {
      if (!waiting.empty()) {
        for (uint32_t& line : block.bad) line += static_cast<uint32_t>(waiting.size());
        block.bad.insert(block.bad.begin(), waiting.begin(), waiting.end());
        block.begin = waiting_begin;
        block.content = 0;
        waiting.clear();
      }
      kept.push_back(std::move(block));
    }
  }
  end_file();
  geometry->blocks = std::move(kept);
}

void take_out(const std::vector<BadRecord>& bad, Geometry* geometry) {
  for (const BadRecord& record : bad) {
    DataBlock& block = geometry->blocks[record.block];
    block.bad.push_back(record.line);
    --block.records;
    --geometry->files[block.file].records;
  }
  drop_empty_blocks(geometry);
  uint64_t first = 0;
  for (DataBlock& block : geometry->blocks) {
    block.first_record = first;
    first += block.records;
  }
  number_lines(geometry);
}

}  // namespace

Status too_many_bad_records(const std::string& first, uint64_t found, uint64_t allowed) {
  return invalid(
      "{}\nthis and {} more bad record{} were found so far, more than data.bad_records: {} allows "
      "to "
      "be set aside; `flux data validate` names them all",
      first, with_commas(found - 1), found == 2 ? "" : "s", with_commas(allowed));
}

Result<std::vector<BadRecord>> find_bad_records(const Dataset& data, const DataOptions& options,
                                                uint32_t block) {
  std::vector<BadRecord> bad;
  FLUX_ASSIGN_OR_RETURN(auto reader, data.open_block(block, 0));
  const Status whole = read_all(*reader, data.geometry().batches_in(block));
  if (whole.is_ok()) return bad;
  if (whole.code() != Code::kInvalid) return whole;
  if (auto* loaded = dynamic_cast<OneByOne*>(reader.get())) {
    loaded->read_one_by_one();
  } else {
    reader.reset();
    FLUX_ASSIGN_OR_RETURN(reader, open_singly(data.geometry(), options, block));
  }
  Batch batch;
  for (uint32_t line = 0; line < data.geometry().blocks[block].records; ++line) {
    Status status = reader->read_batch(line, &batch);
    if (!status.is_ok())
      bad.push_back({block, line, reader->describe_example(line, 0), std::move(status)});
  }
  return bad;
}

Result<std::vector<BadRecord>> set_aside_bad_records(const DataOptions& options, unsigned threads,
                                                     const std::atomic<bool>* stop,
                                                     Geometry* geometry) {
  DataOptions plain = options;
  plain.shuffle = false;
  Geometry in_order = *geometry;
  in_order.shuffle_seed = 0;
  FLUX_ASSIGN_OR_RETURN(const auto data, Dataset::open(in_order, plain));
  std::vector<BadRecord> bad;
  const auto blocks = static_cast<uint32_t>(geometry->blocks.size());
  for (uint32_t first = 0; first < blocks; first += threads) {
    if (stop != nullptr && stop->load()) return error(Code::kCancelled, "stopped while reading");
    std::vector<std::vector<BadRecord>> found(std::min(threads, blocks - first));
    FLUX_RETURN_IF_ERROR(parallel_for(found.size(), threads, [&](size_t i) -> Status {
      FLUX_ASSIGN_OR_RETURN(found[i],
                            find_bad_records(*data, plain, first + static_cast<uint32_t>(i)));
      return Status::ok();
    }));
    for (std::vector<BadRecord>& some : found)
      std::move(some.begin(), some.end(), std::back_inserter(bad));
    if (bad.size() > options.bad_records)
      return too_many_bad_records(bad.front().why.message(), bad.size(), options.bad_records);
  }
  if (bad.size() == geometry->records())
    return invalid("{}\nand no other record is good either", bad.front().why.message());
  take_out(bad, geometry);
  return bad;
}

std::string bad_records_text(const std::vector<BadRecord>& bad) {
  std::string text;
  for (const BadRecord& record : bad)
    text += fmt::format("{}\t{}\n", record.place, record.why.message());
  return text;
}

}  // namespace flux
