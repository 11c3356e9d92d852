// PipeStream: the text that a command makes of a data file.
//
// The command runs as long as the stream lives and is held up when nobody reads: memory is that of
// a pipe. What it writes to its standard error is kept in part, for messages. Threads and
// ownership: as TextStream. Failure: kInvalid that names file and command: it is not found, writes
// nothing for longer than allowed, writes more than allowed, or ends with anything but exit code 0
// (with the last lines of its standard error).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "flux/data/sources/child_process.h"
#include "flux/data/sources/pipe_options.h"
#include "flux/data/sources/text_stream.h"

namespace flux {

class PipeStream final : public TextStream {
 public:
  static Result<std::unique_ptr<PipeStream>> start(const std::string& path,
                                                   const PipeOptions& options);

  Result<size_t> read(char* out, size_t size) override;
  uint64_t text_offset() const override { return text_; }
  uint64_t file_offset() const override;

 private:
  PipeStream(std::string path, PipeOptions options, std::unique_ptr<ChildProcess> child)
      : path_(std::move(path)), options_(std::move(options)), child_(std::move(child)) {}
  // Waits until there is output; takes what comes on standard error.
  Status wait_for_output();
  Status check_size();
  void take_errors();
  std::chrono::milliseconds timeout() const;
  Status finish();
  Status refuse(const std::string& what) const;

  const std::string path_;
  const PipeOptions options_;
  std::unique_ptr<ChildProcess> child_;  // null: it has ended well
  uint64_t text_ = 0;
  uint64_t file_bytes_ = 0;  // that it took, once it has ended
  std::string errors_;       // the last part
};

}  // namespace flux
