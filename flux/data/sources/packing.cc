#include "flux/data/sources/packing.h"

#include <algorithm>
#include <cstring>

namespace flux {
namespace {

constexpr unsigned char kGzipMagic[] = {0x1f, 0x8b};
constexpr uint32_t kZstdMagic = 0xFD2FB528;
constexpr uint32_t kSkippableMagic = 0x184D2A50;  // and the 15 behind it

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
  unsigned char bytes[4] = {};
  FLUX_RETURN_IF_ERROR(file.read_at(0, bytes, std::min<uint64_t>(sizeof bytes, file.size())));
  const Packing found = by_first_bytes(bytes);
  const Packing named = packing_by_name(file.path());
  if (named != Packing::kPlain && named != found && file.size() > 0)
    return error(Code::kCorrupt, "{}: {} data is damaged at byte 0: no {} head; copy it again",
                 file.path(), packing_name(named), packing_name(named));
  return found;
}

}  // namespace flux
