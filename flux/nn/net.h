// Net: one graph made ready to run on a CPU, forward and backward, by a team of threads.
//
// All members of the team work on one batch, and what they compute has the same bits however many
// they are. Owns its activations and its copy of the dense parameters in compute precision; the
// parameters themselves are the caller's. With bf16 the products run in bf16 with fp32
// accumulation; parameters, gradients, loss and everything outside stay fp32. Threads: calls come
// from the thread that leads the team, one at a time. Failure: compile() says what the CPU or the
// graph lacks; running cannot fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/base/team.h"
#include "flux/nn/graph.h"

namespace flux {

enum class Precision : unsigned char { kFp32, kBf16 };

// "auto" is bf16 where the CPU computes it natively, else fp32.
Result<Precision> choose_precision(const std::string& wish);
const char* precision_name(Precision precision);

// The pulled rows of one table for one batch: occurrence i of a key uses row index[i].
struct TableInput {
  const float* rows = nullptr;  // [row_count][dim]
  size_t row_count = 0;
  size_t first_row = 0;             // those before it are of other tables: not read, not written
  const uint32_t* index = nullptr;  // [occurrences]
  // The way back, for training by more than one thread: the occurrences of row r, in rising order,
  // are occurrences[row_begin[r]] up to row_begin[r + 1]. Null: `index` is searched for them.
  const uint32_t* row_begin = nullptr;
  const uint32_t* occurrences = nullptr;
};

struct NetInput {
  uint32_t batch = 0;              // examples, <= NetOptions::batch_max
  const float* labels = nullptr;   // [ModelInputs::labels][batch], may be null for predict()
  const float* dense = nullptr;    // [batch][dense]
  std::vector<TableInput> tables;  // as Graph::tables()
  // [batch * slots + 1], where ModelInputs::many_keys: slot s of example b has the occurrences from
  // begin[b * slots + s] up to begin[b * slots + s + 1], perhaps none. Null: b * slots + s alone.
  const uint32_t* begin = nullptr;
  const float* values = nullptr;   // [occurrences], by which rows are multiplied; null: all 1
  const float* weights = nullptr;  // [batch], where ModelInputs::weights
  uint64_t noise = 0;  // seed of what is random in training; the same for the same batch
};

struct NetGradients {
  float* parameters = nullptr;  // [Graph::parameter_count()], overwritten
  std::vector<float*> tables;   // each [row_count][dim], overwritten (sum over occurrences)
};

struct NetOptions {
  Precision precision = Precision::kFp32;
  uint32_t batch_max = 1000;
  bool profile = false;  // measure each node, see Net::profile()
  Team* team = nullptr;  // lives longer than the net; null: the calling thread alone
};

// Thread CPU seconds spent in one node since compile(); zeros unless NetOptions::profile.
struct NodeTime {
  std::string name;
  double set_s = 0, forward_s = 0, backward_s = 0;
};

class Net {
 public:
  virtual ~Net() = default;
  static Result<std::unique_ptr<Net>> compile(std::shared_ptr<const Graph> graph,
                                              const NetOptions& options);
  virtual const Graph& graph() const = 0;
  // Takes the flat dense parameters, which must stay as they are until the next ones are given.
  virtual void set_parameters(const float* flat) = 0;
  // Forward and backward of the mean loss over the batch. Returns the *sum* of the losses, each
  // head's by its weight; predictions ([heads][batch]) are written if not null.
  virtual double train(const NetInput& input, NetGradients* gradients, float* predictions) = 0;
  // Forward only. Returns the sum of the losses if labels are given, else 0.
  virtual double predict(const NetInput& input, float* predictions) = 0;
  virtual std::vector<NodeTime> profile() const { return {}; }
};

}  // namespace flux
