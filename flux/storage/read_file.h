// ReadFile: positional reads of one file. Safe from any thread once open; closes itself.
// Failure: kNotFound or kIo with the path and the system's reason; kInvalid for what is not a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "flux/base/status.h"

namespace flux {

class ReadFile {
 public:
  static Result<std::unique_ptr<ReadFile>> open(const std::string& path);
  ~ReadFile();
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened
  // Reads exactly `bytes` bytes at `offset`; fewer in the file is kIo ("shrank").
  Status read_at(uint64_t offset, char* out, size_t bytes) const;

 private:
  ReadFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_;
  uint64_t size_;
};

}  // namespace flux
