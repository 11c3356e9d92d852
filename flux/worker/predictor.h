// Predictor: forward passes over a dataset with the servers' current rows; changes nothing.
//
// Blocks in order, the batches of a block on all threads; results reach the sink block by block, in
// the order of the records. Used by evaluation and by `flux predict`.
// Threads: run() starts and joins its own. Failure: the first Status of any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/api/server.h"
#include "flux/data/dataset.h"
#include "flux/metrics/metric_set.h"
#include "flux/metrics/slices.h"
#include "flux/nn/net.h"

namespace flux {

struct PredictorOptions {
  std::vector<std::shared_ptr<const Graph>> graphs;  // of the job, by phase
  uint32_t phase = 0;                                // whose network predicts
  NetOptions net;
  uint32_t threads = 1;
  ModelShape shape;                  // of the server
  std::vector<uint8_t> slot_groups;  // worker/key_groups.h
  uint64_t incarnation = 0;
  std::vector<SliceSlot> slices = {};
  const std::atomic<bool>* stop = nullptr;  // kCancelled after the block in which it turns true
};

class Predictor {
 public:
  // Predictions of one block, in the order of its records, those of one record by head.
  using Sink = std::function<Status(std::span<const float> predictions)>;
  static Result<MetricReport> run(const PredictorOptions& options, ServerPort* server,
                                  const Dataset& dataset, const Sink& sink);
};

}  // namespace flux
