#include "flux/data/tools/whole_data.h"

#include <algorithm>
#include <utility>

#include "flux/base/parallel.h"
#include "flux/data/bad_records.h"
#include "flux/data/text/example_names.h"

namespace flux {
namespace {

constexpr uint32_t kBatch = 1024;

struct NamedBatch {
  Batch batch;
  std::vector<std::string> names;
};

// As many batches of a block as hold its first `records`.
Status read_block(const Dataset& data, uint32_t block, uint64_t records, bool named,
                  std::vector<NamedBatch>* out) {
  FLUX_ASSIGN_OR_RETURN(const auto reader, data.open_block(block, 0));
  const auto* names = named ? dynamic_cast<const ExampleNames*>(reader.get()) : nullptr;
  const uint32_t batch_size = data.geometry().batch_size;
  out->resize((records + batch_size - 1) / batch_size);
  for (uint32_t i = 0; i < out->size(); ++i) {
    FLUX_RETURN_IF_ERROR(reader->read_batch(i, &(*out)[i].batch));
    if (names != nullptr) (*out)[i].names = names->names_of(i);
  }
  return Status::ok();
}

}  // namespace

DataOptions as_written(DataOptions options) {
  options.shuffle = false;
  options.dense_transform = "none";
  options.key_per_example = false;
  options.features.clear();
  options.hidden.clear();
  options.slices.clear();
  return options;
}

Result<WholeData> WholeData::open(const std::vector<std::string>& files, DataOptions options,
                                  unsigned threads) {
  options = as_written(std::move(options));
  options.batch_size = kBatch;
  FLUX_ASSIGN_OR_RETURN(Geometry geometry, Dataset::scan(files, options, threads));
  return open_cut(std::move(geometry), std::move(options), threads);
}

Result<WholeData> WholeData::open_cut(Geometry geometry, DataOptions options, unsigned threads) {
  WholeData out(as_written(std::move(options)), threads);
  geometry.shuffle_seed = 0;
  out.options_.batch_size = geometry.batch_size;
  FLUX_ASSIGN_OR_RETURN(out.data_, Dataset::open(geometry, out.options_));
  return out;
}

Status WholeData::read(const Sink& sink) const {
  return read_batches(false,
                      [&](const Batch& batch, const auto& /*names*/) { return sink(batch); });
}

Status WholeData::read_named(const NamedSink& sink) const {
  return read_batches(true, sink);
}

Status WholeData::read_batches(bool named, const NamedSink& sink) const {
  if (options_.format == "sentences")
    return invalid(
        "sentences are no records: what a model reads of them is drawn in each epoch; flux data "
        "head "
        "shows them, flux data vocab counts their words");
  const auto blocks = static_cast<uint32_t>(data_->geometry().blocks.size());
  for (uint32_t first = 0; first < blocks; first += threads_) {
    std::vector<std::vector<NamedBatch>> read(std::min(threads_, blocks - first));
    FLUX_RETURN_IF_ERROR(parallel_for(read.size(), threads_, [&](size_t i) {
      const uint32_t block = first + static_cast<uint32_t>(i);
      return read_block(*data_, block, data_->geometry().blocks[block].records, named, &read[i]);
    }));
    for (const std::vector<NamedBatch>& batches : read)
      for (const NamedBatch& one : batches) FLUX_RETURN_IF_ERROR(sink(one.batch, one.names));
  }
  return Status::ok();
}

Result<bool> WholeData::has_names() const {
  for (uint32_t block = 0; block < data_->geometry().blocks.size(); ++block) {
    FLUX_ASSIGN_OR_RETURN(const auto reader, data_->open_block(block, 0));
    const auto* names = dynamic_cast<const ExampleNames*>(reader.get());
    if (names == nullptr) return false;
    for (uint32_t i = 0; i < data_->geometry().batches_in(block); ++i)
      for (const std::string& name : names->names_of(i))
        if (!name.empty()) return true;
  }
  return false;
}

Status WholeData::read_first(uint64_t records, const Sink& sink) const {
  const std::vector<DataBlock>& blocks = data_->geometry().blocks;
  for (uint32_t block = 0; block < blocks.size() && records > 0; ++block) {
    const uint64_t some = std::min<uint64_t>(records, blocks[block].records);
    std::vector<NamedBatch> batches;
    if (read_block(*data_, block, some, false, &batches).is_ok()) {
      for (const NamedBatch& one : batches) FLUX_RETURN_IF_ERROR(sink(one.batch));
    } else {
      FLUX_RETURN_IF_ERROR(read_singly(block, some, sink));
    }
    records -= some;
  }
  return Status::ok();
}

// The first records of a block as batches of one, up to the first that is refused.
Status WholeData::read_singly(uint32_t block, uint64_t records, const Sink& sink) const {
  Geometry one = data_->geometry();
  DataBlock& only = one.blocks[0] = one.blocks[block];
  one.blocks.resize(1);
  one.batch_size = 1;
  only.content = 0;                                         // it was by batches
  if (one.files[only.file].packing == Packing::kColumns) {  // read as a whole
    only.end = only.begin + records;
    only.records = static_cast<uint32_t>(records);
  }
  DataOptions single = options_;
  single.batch_size = 1;
  FLUX_ASSIGN_OR_RETURN(const auto data, Dataset::open(one, single));
  FLUX_ASSIGN_OR_RETURN(const auto reader, data->open_block(0, 0));
  Batch batch;
  for (uint32_t i = 0; i < records; ++i) {
    FLUX_RETURN_IF_ERROR(reader->read_batch(i, &batch));
    FLUX_RETURN_IF_ERROR(sink(batch));
  }
  return Status::ok();
}

Status WholeData::check(const std::function<void(const Status& why)>& found) const {
  const auto blocks = static_cast<uint32_t>(data_->geometry().blocks.size());
  for (uint32_t first = 0; first < blocks; first += threads_) {
    std::vector<std::vector<BadRecord>> bad(std::min(threads_, blocks - first));
    FLUX_RETURN_IF_ERROR(parallel_for(bad.size(), threads_, [&](size_t i) -> Status {
      FLUX_ASSIGN_OR_RETURN(bad[i],
                            find_bad_records(*data_, options_, first + static_cast<uint32_t>(i)));
      return Status::ok();
    }));
    for (const std::vector<BadRecord>& some : bad)
      for (const BadRecord& record : some) found(record.why);
  }
  return Status::ok();
}

}  // namespace flux
