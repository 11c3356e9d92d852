#include "flux/main/evaluate.h"

#include "flux/data/blocks/block_file.h"
#include "flux/data/blocks/record_schema.h"
#include "flux/data/parquet/parquet_file.h"
#include "flux/main/pass_data.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

// How the job's examples are read from a file that says itself what it is: what was converted need
// not be what the model was trained on.
Result<DataOptions> options_for(const DataOptions& job, const std::string& path) {
  if (!job.pipe.command.empty()) return job;  // which makes text of it
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  const bool blocks = BlockFile::looks_like_one(file) && job.format != "blocks";
  const bool parquet = ParquetFile::looks_like_one(file) && job.format != "parquet";
  if (!blocks && !parquet) return job;
  bool own = true;  // its keys are those of tables
  if (parquet) {
    FLUX_ASSIGN_OR_RETURN(const auto opened, ParquetFile::open(path));
    own = opened->is_own();
  }
  DataOptions out = block_file_options(job);
  if (!own) out.slots = job.slots;  // how keys are made of what the columns hold
  if (parquet) out.format = "parquet";
  if (parquet) out.raw_keys = own;
  fmt::print(stderr, "note: {} is of format {}, where the job says {}\n", path, out.format,
             job.format);
  return out;
}

Result<std::unique_ptr<Dataset>> open_data(const SavedModel& model,
                                           std::span<const std::string> files, bool every_record,
                                           SetAside set_aside, const std::atomic<bool>* stop) {
  FLUX_ASSIGN_OR_RETURN(const auto paths, expand_globs(files));
  FLUX_ASSIGN_OR_RETURN(DataOptions data, options_for(model.role.job.data, paths.at(0)));
  if (every_record) data.bad_records = 0;
  data.shuffle = false;  // predictions come out in the order of the file
  const auto scan = set_aside == SetAside::kTold ? scan_evaluated : scan_good;
  FLUX_ASSIGN_OR_RETURN(const Geometry geometry, scan(paths, data, model.threads, stop));
  return Dataset::open(geometry, data);
}

PredictorOptions options_of(const SavedModel& model, uint32_t phase) {
  PredictorOptions options;
  options.graphs = model.role.graphs;
  options.phase = phase;
  options.net = {model.precision, model.role.job.data.batch_size};
  options.threads = model.threads;
  options.shape = model.server->shape();
  options.slot_groups = model.role.job.slot_groups;
  options.incarnation = model.incarnation;
  options.slices = slice_slots(model.role.job);
  return options;
}

}  // namespace

Result<MetricReport> evaluate(const SavedModel& model, std::span<const std::string> files,
                              const std::atomic<bool>* stop, SetAside set_aside) {
  FLUX_ASSIGN_OR_RETURN(const auto dataset, open_data(model, files, false, set_aside, stop));
  MetricReport all;
  for (uint32_t p = 0; p < model.role.graphs.size(); ++p) {
    PredictorOptions options = options_of(model, p);
    options.stop = stop;
    FLUX_ASSIGN_OR_RETURN(MetricReport one,
                          Predictor::run(options, model.server.get(), *dataset, {}));
    if (model.role.graphs.size() == 1) return one;
    all.add_phase(model.role.job.phases[p].name, std::move(one));
  }
  return all;
}

Result<MetricReport> predict(const SavedModel& model, std::span<const std::string> files,
                             uint32_t phase, const Predictor::Sink& sink) {
  FLUX_ASSIGN_OR_RETURN(const auto dataset,
                        open_data(model, files, true, SetAside::kTold, nullptr));
  return Predictor::run(options_of(model, phase), model.server.get(), *dataset, sink);
}

}  // namespace flux
