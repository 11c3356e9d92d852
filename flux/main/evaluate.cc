#include "flux/main/evaluate.h"

#include "flux/main/pass_data.h"

namespace flux {
namespace {

Result<std::unique_ptr<Dataset>> open_data(const SavedModel& model,
                                           std::span<const std::string> files, bool every_record,
                                           const std::atomic<bool>* stop) {
  DataOptions data = model.role.job.data;
  if (every_record) data.bad_records = 0;
  data.shuffle = false;  // predictions come out in the order of the file
  FLUX_ASSIGN_OR_RETURN(const auto paths, expand_globs(files));
  FLUX_ASSIGN_OR_RETURN(const Geometry geometry, scan_evaluated(paths, data, model.threads, stop));
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
                              const std::atomic<bool>* stop) {
  FLUX_ASSIGN_OR_RETURN(const auto dataset, open_data(model, files, false, stop));
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
  FLUX_ASSIGN_OR_RETURN(const auto dataset, open_data(model, files, true, nullptr));
  return Predictor::run(options_of(model, phase), model.server.get(), *dataset, sink);
}

}  // namespace flux
