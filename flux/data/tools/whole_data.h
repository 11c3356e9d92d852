// WholeData: every example of some files once, in the order of the files, as batches.
//
// For tools that look at data or convert it: no shuffling, numbers as they are written. Blocks are
// parsed by `threads` threads; the sink is called on the calling thread, in order.
// Failure: as Dataset; what the sink returns ends the reading.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flux/data/blocks/record_schema.h"
#include "flux/data/dataset.h"

namespace flux {

// The options that read examples as the files hold them: nothing is computed, nothing shuffled.
DataOptions as_written(DataOptions options);

class WholeData {
 public:
  static Result<WholeData> open(const std::vector<std::string>& files, DataOptions options,
                                unsigned threads);
  // Of data that is cut already, without the records that were set aside.
  static Result<WholeData> open_cut(Geometry geometry, DataOptions options, unsigned threads);

  RecordSchema schema() const { return schema_of(options_); }
  uint64_t records() const { return data_->geometry().records(); }
  const DataOptions& options() const { return options_; }
  using Sink = std::function<Status(const Batch& batch)>;
  // Not of sentences, whose batches are drawn.
  Status read(const Sink& sink) const;
  // With what the lines call the examples; `names` is empty in formats without names.
  using NamedSink =
      std::function<Status(const Batch& batch, const std::vector<std::string>& names)>;
  Status read_named(const NamedSink& sink) const;
  // Whether any example has a name; looks at all lines if none has.
  Result<bool> has_names() const;
  // The first `records` of them, by this thread alone. A mistake in a record behind them is none:
  // as far as the format allows, nothing else is looked at.
  Status read_first(uint64_t records, const Sink& sink) const;

  // Looks at every record by itself; `found` is called for each that is refused, in order.
  Status check(const std::function<void(const Status& why)>& found) const;

 private:
  Status read_singly(uint32_t block, uint64_t records, const Sink& sink) const;

  WholeData(DataOptions options, unsigned threads)
      : options_(std::move(options)), threads_(threads) {}
  Status read_batches(bool named, const NamedSink& sink) const;

  DataOptions options_;
  unsigned threads_;
  std::shared_ptr<const Dataset> data_;
};

}  // namespace flux
