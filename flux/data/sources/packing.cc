#include "flux/data/sources/packing.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace flux {
namespace {

constexpr unsigned char kGzipMagic[] = {0x1f, 0x8b};
constexpr uint32_t kZstdMagic = 0xFD2FB528;
constexpr uint32_t kSkippableMagic = 0x184D2A50;  // and the 15 behind it

// What is not read as text, by its first bytes.
struct Foreign {
  std::string_view first;
  const char* what;  // it is, and what to do
};
using namespace std::string_view_literals;
constexpr Foreign kForeign[] = {
    {"\xfd"
     "7zXZ\0"sv,
     "is packed with xz, which is not read; unpack it, or say data.pipe: [xz, -dc]"},
    {"BZh"sv, "is packed with bzip2, which is not read; unpack it, or say data.pipe: [bzip2, -dc]"},
    {"\x04\x22\x4d\x18"sv,
     "is packed with lz4, which is not read; unpack it, or say data.pipe: [lz4, -dc]"},
    {"PK\x03\x04"sv, "is a zip archive, which is not read; unpack it"},
    {"PAR1"sv, "is a Parquet file; say data.format: parquet"},
    {"FLUXBLK1"sv, "is a block file; say data.format: blocks"},
    {"\xff\xfe"sv, "is text in UTF-16, which is not read; save it as UTF-8"},
    {"\xfe\xff"sv, "is text in UTF-16, which is not read; save it as UTF-8"},
};
constexpr size_t kFirstBytes = 10;

bool begins_with(std::string_view bytes, const Foreign& foreign) {
  constexpr std::string_view kBzip2Block = "\x31\x41\x59\x26\x53\x59"sv;  // behind BZh9
  if (!bytes.starts_with(foreign.first)) return false;
  return foreign.first != "BZh"sv || bytes.substr(4) == kBzip2Block;
}

Packing by_first_bytes(const unsigned char* bytes) {
  if (std::memcmp(bytes, kGzipMagic, sizeof kGzipMagic) == 0) return Packing::kGzip;
  uint32_t magic = 0;
  std::memcpy(&magic, bytes, sizeof magic);
  const bool zstd = magic == kZstdMagic || (magic & 0xFFFFFFF0U) == kSkippableMagic;
  return zstd ? Packing::kZstd : Packing::kPlain;
}

}  // namespace

const char* packing_name(Packing packing) {
  constexpr const char* kNames[] = {"plain text", "gzip", "zstd", "the output of a pipe",
                                    "columns"};
  return kNames[static_cast<size_t>(packing)];
}

Packing packing_by_name(std::string_view path) {
  if (path.ends_with(".gz")) return Packing::kGzip;
  if (path.ends_with(".zst") || path.ends_with(".zstd")) return Packing::kZstd;
  return Packing::kPlain;
}

Result<Packing> find_packing(const ReadFile& file) {
  unsigned char bytes[kFirstBytes] = {};
  FLUX_RETURN_IF_ERROR(file.read_at(0, bytes, std::min<uint64_t>(sizeof bytes, file.size())));
  const std::string_view text(reinterpret_cast<const char*>(bytes), sizeof bytes);
  for (const Foreign& foreign : kForeign)
    if (begins_with(text, foreign)) return invalid("{}: {}", file.path(), foreign.what);
  const Packing found = by_first_bytes(bytes);
  const Packing named = packing_by_name(file.path());
  if (named != Packing::kPlain && named != found && file.size() > 0)
    return error(Code::kCorrupt, "{}: {} data is damaged at byte 0: no {} head; copy it again",
                 file.path(), packing_name(named), packing_name(named));
  return found;
}

}  // namespace flux
