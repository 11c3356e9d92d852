#include "flux/data/sources/packing.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "flux/data/sources/first_bytes.h"

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

// Of kFirstBytes bytes; null: none of them.
const Foreign* find_foreign(std::string_view bytes) {
  const auto* at = std::find_if(std::begin(kForeign), std::end(kForeign),
                                [&](const Foreign& known) { return begins_with(bytes, known); });
  return at == std::end(kForeign) ? nullptr : at;
}

Packing by_first_bytes(std::string_view bytes) {
  if (std::memcmp(bytes.data(), kGzipMagic, sizeof kGzipMagic) == 0) return Packing::kGzip;
  uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), sizeof magic);
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

bool begins_as_text(std::string_view text) {
  std::string bytes(text.substr(0, kFirstBytes));
  bytes.resize(kFirstBytes, '\0');
  return find_foreign(bytes) == nullptr && by_first_bytes(bytes) == Packing::kPlain;
}

Result<Packing> find_packing(const ReadFile& file) {
  std::string bytes(kFirstBytes, '\0');
  FLUX_RETURN_IF_ERROR(
      file.read_at(0, bytes.data(), std::min<uint64_t>(bytes.size(), file.size())));
  if (const Foreign* foreign = find_foreign(bytes))
    return invalid("{}: {}", file.path(), foreign->what);
  const Packing found = by_first_bytes(bytes);
  const Packing named = packing_by_name(file.path());
  if (named != Packing::kPlain && named != found && file.size() > 0)
    return error(Code::kCorrupt,
                 "{}: is not {} data, as its name says: it {}; name it otherwise, or copy it again "
                 "if it is damaged",
                 file.path(), packing_name(named),
                 found == Packing::kPlain ? fmt::format("has no {} head", packing_name(named))
                                          : fmt::format("begins as {}", packing_name(found)));
  return found;
}

}  // namespace flux
