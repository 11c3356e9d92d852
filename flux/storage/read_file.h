// ReadFile: positional reads of one regular file.
//
// Positional, because blocks of one file are read by several threads at once and a shared file
// position would tie them together.
// Threads: const after open(); read_at() may be called from any number of threads.
// Ownership: holds the descriptor, closes it when destroyed; moves, never copies.
// Failure: kNotFound if the path is absent, kInvalid for a directory or another thing that is no
// regular file, kIo for the rest; every message begins with the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "flux/base/status.h"

namespace flux {

class ReadFile {
 public:
  static Result<ReadFile> open(const std::string& path);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&& other) noexcept;
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;
  ~ReadFile();

  const std::string& path() const { return path_; }
  // Size in bytes when the file was opened.
  uint64_t size() const { return size_; }
  // When its content last changed, as the file system says; nanoseconds since 1970.
  int64_t modified_ns() const { return modified_ns_; }
  // Whether size and time of change are still those of open().
  Result<bool> is_as_opened() const;
  // Fills out[0, size) from `offset`; kIo naming the byte where the file ended if it is shorter.
  Status read_at(uint64_t offset, void* out, size_t size) const;

 private:
  ReadFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
  int64_t modified_ns_ = 0;
};

}  // namespace flux
