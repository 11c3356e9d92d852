// TextOut: where a command writes lines that a person named with --out.
//
// "-" is standard output. Another file appears only when it is whole, packed as the end of its name
// says (.gz, .zst); pipes and devices are written in place.
// Threads: one. Ownership: what is not finished is removed. Failure: Status with the path.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "flux/base/status.h"
#include "flux/data/piecewise_file.h"

namespace flux {

class TextOut {
 public:
  static Result<std::unique_ptr<TextOut>> create(const std::string& named);
  TextOut(const TextOut&) = delete;
  TextOut& operator=(const TextOut&) = delete;

  bool to_screen() const { return file_ == nullptr; }
  uint64_t bytes() const { return bytes_; }  // written so far, packed
  Status write(std::string_view text);
  Status finish();  // nothing may be written after it

 private:
  explicit TextOut(std::unique_ptr<PiecewiseFile> file);
  Status flush();

  std::unique_ptr<PiecewiseFile> file_;  // null: standard output
  PiecePacker packer_;
  std::string waiting_;  // of a piece
  uint64_t bytes_ = 0;
};

// Where to tell about lines that were written to `out`: not among them.
std::FILE* told_beside(const std::string& out);

}  // namespace flux
