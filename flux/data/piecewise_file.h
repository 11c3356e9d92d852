// A file written in pieces that appears only when it is whole; plain, one gzip member, or
// a zstd frame for each piece.
//
// Made for many producers: each turns its piece into file bytes by itself (pack, any thread, the
// costly part), then append() takes the packed pieces in order, one caller at a time. The bytes
// depend on the pieces only. Until commit() they live in path + ".tmp", which the destructor
// removes; "-" is standard output, and what is no file (a pipe, a device) is written in place.
// Failure: Status with the path and the system's reason.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "flux/base/status.h"
#include "flux/data/sources/packing.h"

namespace flux {

constexpr std::string_view kStandardOutput = "-";  // where a file is named

// One per producer: bytes of a piece as they go into the file, valid until its next pack().
class PiecePacker {
 public:
  explicit PiecePacker(Packing packing);
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
  Result<Piece> pack_zstd(std::string_view plain);
  struct Deflater;
  struct Zstd;
  std::unique_ptr<Deflater> deflater_;  // null: not gzip
  std::unique_ptr<Zstd> zstd_;          // null: not zstd
  std::string packed_;
};

class PiecewiseFile {
 public:
  static Result<std::unique_ptr<PiecewiseFile>> create(const std::string& named);
  ~PiecewiseFile();
  PiecewiseFile(const PiecewiseFile&) = delete;
  PiecewiseFile& operator=(const PiecewiseFile&) = delete;

  Packing packing() const { return packing_; }  // by the end of the path
  Status append(const PiecePacker::Piece& piece);
  Status commit();  // flushes to disk and renames; nothing may be appended after it

 private:
  PiecewiseFile(std::string path, int fd, bool in_place);
  Status write(std::string_view bytes);

  const std::string path_;
  const bool in_place_;  // a device or pipe: nothing is put aside or renamed
  const std::string aside_;
  const Packing packing_;
  int fd_;
  uint64_t plain_size_ = 0;
  uint32_t plain_crc_ = 0;
};

// All of a text that is there already.
Status write_packed_by_name(const std::string& named, std::string_view text);

}  // namespace flux
