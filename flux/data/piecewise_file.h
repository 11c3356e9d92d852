// A file written in pieces that appears only when it is whole; plain, or one gzip member.
//
// Made for many producers: each turns its piece into file bytes by itself (pack, any thread, the
// costly part), then append() takes the packed pieces in order, one caller at a time. The bytes
// depend on the pieces only. Until commit() they live in path + ".tmp", which the destructor
// removes. Failure: Status with the path and the system's reason.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "flux/base/status.h"

namespace flux {

// One per producer: bytes of a piece as they go into the file, valid until its next pack().
class PiecePacker {
 public:
  explicit PiecePacker(bool gzip);
  ~PiecePacker();
  PiecePacker(const PiecePacker&) = delete;
  PiecePacker& operator=(const PiecePacker&) = delete;
  struct Piece {
    std::string_view bytes;
    uint64_t plain_size = 0;
    uint32_t plain_crc = 0;  // gzip only
  };
  Result<Piece> pack(std::string_view plain);

 private:
  struct Deflater;
  std::unique_ptr<Deflater> deflater_;  // null: plain
  std::string packed_;
};

class PiecewiseFile {
 public:
  static Result<std::unique_ptr<PiecewiseFile>> create(const std::string& named);
  ~PiecewiseFile();
  PiecewiseFile(const PiecewiseFile&) = delete;
  PiecewiseFile& operator=(const PiecewiseFile&) = delete;

  bool gzip() const { return gzip_; }  // the path ends in ".gz"
  Status append(const PiecePacker::Piece& piece);
  Status commit();  // flushes to disk and renames; nothing may be appended after it

 private:
  PiecewiseFile(std::string path, int fd);
  Status write(std::string_view bytes);

  const std::string path_;
  const bool in_place_;  // a device or pipe: nothing is put aside or renamed
  const std::string aside_;
  const bool gzip_;
  int fd_;
  uint64_t plain_size_ = 0;
  uint32_t plain_crc_ = 0;
};

}  // namespace flux
