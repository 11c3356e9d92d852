#include "flux/data/tools/whole_data.h"

#include <algorithm>
#include <utility>

#include "flux/base/parallel.h"

namespace flux {
namespace {

constexpr uint32_t kBatch = 1024;

Status read_block(const Dataset& data, uint32_t block, std::vector<Batch>* out) {
  FLUX_ASSIGN_OR_RETURN(const auto reader, data.open_block(block, 0));
  out->resize(data.geometry().batches_in(block));
  for (uint32_t i = 0; i < out->size(); ++i)
    FLUX_RETURN_IF_ERROR(reader->read_batch(i, &(*out)[i]));
  return Status::ok();
}

}  // namespace

Result<WholeData> WholeData::open(const std::vector<std::string>& files, DataOptions options,
                                  unsigned threads) {
  options.shuffle = false;
  options.dense_transform = "none";
  options.batch_size = kBatch;
  options.key_per_example = false;
  options.features.clear();  // what the files hold
  options.hidden.clear();
  options.slices.clear();
  if (options.format == "sentences")
    return invalid("files of format sentences are plain text: look at them with 'head'");
  FLUX_ASSIGN_OR_RETURN(const Geometry geometry, Dataset::scan(files, options, threads));
  WholeData out(std::move(options), threads);
  FLUX_ASSIGN_OR_RETURN(out.data_, Dataset::open(geometry, out.options_));
  return out;
}

Status WholeData::read(const Sink& sink) const {
  const auto blocks = static_cast<uint32_t>(data_->geometry().blocks.size());
  for (uint32_t first = 0; first < blocks; first += threads_) {
    std::vector<std::vector<Batch>> read(std::min(threads_, blocks - first));
    FLUX_RETURN_IF_ERROR(parallel_for(read.size(), threads_, [&](size_t i) {
      return read_block(*data_, first + static_cast<uint32_t>(i), &read[i]);
    }));
    for (const std::vector<Batch>& batches : read)
      for (const Batch& batch : batches) FLUX_RETURN_IF_ERROR(sink(batch));
  }
  return Status::ok();
}

// A block with a record that is refused, once more: as batches of one.
Status WholeData::check_block(uint32_t block, std::vector<Status>* bad) const {
  std::vector<Batch> batches;
  const Status whole = read_block(*data_, block, &batches);
  if (whole.is_ok() || whole.code() != Code::kInvalid) return whole;
  Geometry one = data_->geometry();
  one.blocks = {one.blocks[block]};
  one.batch_size = 1;
  one.blocks[0].content = 0;  // it was by batches
  DataOptions options = options_;
  options.batch_size = 1;
  FLUX_ASSIGN_OR_RETURN(const auto data, Dataset::open(one, options));
  FLUX_ASSIGN_OR_RETURN(const auto reader, data->open_block(0, 0));
  Batch batch;
  for (uint32_t i = 0; i < one.blocks[0].records; ++i) {
    const Status status = reader->read_batch(i, &batch);
    if (!status.is_ok()) bad->push_back(status);
  }
  return Status::ok();
}

Status WholeData::check(const std::function<void(const Status& why)>& found) const {
  const auto blocks = static_cast<uint32_t>(data_->geometry().blocks.size());
  for (uint32_t first = 0; first < blocks; first += threads_) {
    std::vector<std::vector<Status>> bad(std::min(threads_, blocks - first));
    FLUX_RETURN_IF_ERROR(parallel_for(bad.size(), threads_, [&](size_t i) {
      return check_block(first + static_cast<uint32_t>(i), &bad[i]);
    }));
    for (const std::vector<Status>& some : bad)
      for (const Status& why : some) found(why);
  }
  return Status::ok();
}

}  // namespace flux
