#include "flux/main/evaluate.h"

namespace flux {

Result<MetricReport> evaluate(const SavedModel& model, std::span<const std::string> files,
                              const Predictor::Sink& sink, const std::atomic<bool>* stop) {
  DataOptions data = model.role.job.data;
  data.shuffle = false;  // predictions come out in the order of the file
  FLUX_ASSIGN_OR_RETURN(const auto paths, expand_globs(files));
  FLUX_ASSIGN_OR_RETURN(const Geometry geometry, Dataset::scan(paths, data, model.threads, stop));
  FLUX_ASSIGN_OR_RETURN(const auto dataset, Dataset::open(geometry, data));
  PredictorOptions options;
  options.graph = model.role.graph;
  options.net = {model.precision, data.batch_size};
  options.threads = model.threads;
  options.shape = model.server->shape();
  options.slot_groups = model.role.job.slot_groups;
  options.incarnation = model.incarnation;
  options.stop = stop;
  return Predictor::run(options, model.server.get(), *dataset, sink);
}

}  // namespace flux
