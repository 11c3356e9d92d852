// FirstRecords: the first records of data files, without a look at what is behind them.
//
// Text is read from the front until there are enough lines (sources/line_stream.h); nothing is
// scanned. Files of other formats are entered through their own index.
// For tools that show data, and for those who want to know early whether a file can be read at all.
// Examples are as the files hold them (as_written()).
// Threads: the calling one. Failure: as Dataset; what the sink returns ends the reading.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/block_readers.h"
#include "flux/data/blocks/record_schema.h"
#include "flux/data/dataset.h"

namespace flux {

class FirstRecords {
 public:
  // Not of format sentences without a vocabulary. Headers of csv files are looked at, all of them.
  static Result<FirstRecords> open(std::vector<std::string> files, const DataOptions& options);

  size_t files() const { return files_.size(); }
  RecordSchema schema() const { return schema_of(options_); }
  // `refused`: ok, and the batch has the next records; or why the next one is none ("path:line:col:
  // what is wrong"), and `batch` is of no use. `names`: what the lines call the examples of the
  // batch ("": nothing); empty in formats without names.
  using Sink = std::function<Status(const Status& refused, const Batch& batch,
                                    const std::vector<std::string>& names)>;
  // The first `records` of a file, refused ones included; returns how many there were. A file that
  // has none is refused. Formats without lines end at the first that is refused.
  Result<uint64_t> read(size_t file, uint64_t records, const Sink& sink) const;

 private:
  FirstRecords() = default;
  Result<uint64_t> read_lines(const std::string& path, uint64_t records, const Sink& sink) const;
  Result<uint64_t> read_others(const std::string& path, uint64_t records, const Sink& sink) const;

  std::vector<std::string> files_;
  DataOptions options_;
  std::unique_ptr<const BlockFormat> format_;  // null: of a format without lines
};

}  // namespace flux
