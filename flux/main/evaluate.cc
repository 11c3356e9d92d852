#include "flux/main/evaluate.h"

namespace flux {

Result<BinaryMetrics> evaluate(const Embedded& e, std::span<const std::string> files,
                               const Predictor::Sink& sink, const std::atomic<bool>* stop) {
  DataOptions data = e.job.data;
  data.shuffle = false;  // predictions come out in the order of the file
  FLUX_ASSIGN_OR_RETURN(const auto paths, expand_globs(files));
  FLUX_ASSIGN_OR_RETURN(const Geometry geometry, Dataset::scan(paths, data, e.threads, stop));
  FLUX_ASSIGN_OR_RETURN(const auto dataset, Dataset::open(geometry, data));
  PredictorOptions options;
  options.graph = e.graph;
  options.net = {e.precision, data.batch_size};
  options.threads = e.threads;
  options.sparse_shards = e.server->sparse_shards();
  options.all_shards = e.server->shard_count();
  options.incarnation = e.incarnation;
  options.stop = stop;
  return Predictor::run(options, e.server.get(), *dataset, sink);
}

}  // namespace flux
