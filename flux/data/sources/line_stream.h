// LineStream: the lines of a data file from the front, as many as somebody wants and no more.
//
// For those who look at the first records: what lies behind them is not read, so a packed file that
// is damaged there, or a command whose output never ends, does no harm.
// Threads: belongs to one thread at a time. Failure: as ReadFile, find_packing() and TextStream,
// but only once all whole lines before the place were handed out; kInvalid for a line that is too
// long.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "flux/base/status.h"
#include "flux/data/sources/pipe_options.h"
#include "flux/data/sources/text_stream.h"
#include "flux/storage/read_file.h"

namespace flux {

class LineStream {
 public:
  static Result<std::unique_ptr<LineStream>> open(const std::string& path, const PipeOptions& pipe);
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  // The next lines, at most `lines_max`, with their newlines (the last of the text may have none);
  // empty at the end. Valid until the next call.
  Result<std::string_view> next(uint64_t lines_max);
  uint64_t lines() const { return lines_; }  // that were handed out
  bool packed() const { return packing_ != Packing::kPlain; }

 private:
  LineStream(ReadFile file, Packing packing) : file_(std::move(file)), packing_(packing) {}
  void read_more();

  const ReadFile file_;
  const Packing packing_;
  std::unique_ptr<TextStream> stream_;
  std::string text_;  // read ahead
  size_t used_ = 0;   // of it, that was handed out by the last call
  uint64_t lines_ = 0;
  bool ended_ = false;  // the text has no more than what is in text_
  Status failure_;      // why no more can be read
};

}  // namespace flux
