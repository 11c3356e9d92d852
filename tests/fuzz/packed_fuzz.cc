// Gzip and zstd files: a stream gives the same text in small and in large pieces, or refuses it; a
// zstd stream that begins at a frame gives the rest of the same text; a gzip file that is read in
// parts gives the parts of it.
// links: data storage base
#include <algorithm>
#include <string>

#include "flux/data/gzip.h"
#include "flux/data/sources/text_stream.h"
#include "flux/data/sources/zstd_stream.h"
#include "tests/fuzz/memory_file.h"

namespace {

constexpr size_t kTextMax = 4 << 20;

// Up to kTextMax of the text; false: the file is refused, or has more.
bool read_text(flux::TextStream* stream, size_t at_once, std::string* out) {
  std::string piece(at_once, '\0');
  for (size_t n = at_once; n == at_once;) {
    const auto got = stream->read(piece.data(), at_once);
    if (!got.is_ok()) return false;
    n = got.value();
    out->append(piece, 0, n);
    if (out->size() > kTextMax) return false;
  }
  return true;
}

void read_zstd_parts(const flux::ReadFile& file, const std::string& text) {
  for (const flux::ZstdPoint& point : flux::find_zstd_points(file, 64)) {
    if (point.text > text.size()) __builtin_trap();
    flux::ZstdStream stream(file, point);
    std::string rest;
    if (!read_text(&stream, 4096, &rest) || rest != text.substr(point.text)) __builtin_trap();
  }
}

void read_gzip_parts(const std::string& path, const std::string& text) {
  const uint64_t third = text.size() / 3;
  const flux::GzipFile file(path, {0, third, 2 * third});
  for (const uint64_t begin : {2 * third, third, uint64_t{0}}) {
    std::string part(std::min<uint64_t>(third, text.size() - begin), '\0');
    if (!file.read(begin, part.size(), part.data()).is_ok() ||
        part != text.substr(begin, part.size()))
      __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const flux::MemoryFile memory(data, size);
  const auto file = flux::ReadFile::open(memory.path());
  if (!file.is_ok()) __builtin_trap();
  const auto packing = flux::find_packing(file.value());
  if (!packing.is_ok() || packing.value() == flux::Packing::kPlain) return 0;
  std::string large, small;
  const auto first = flux::open_stream(file.value(), packing.value());
  const auto second = flux::open_stream(file.value(), packing.value());
  if (!first.is_ok() || !second.is_ok()) return 0;
  if (!read_text(first.value().get(), 1 << 20, &large)) return 0;
  if (!read_text(second.value().get(), 61, &small) || small != large) __builtin_trap();
  // The table of a seekable file may lie; only what frames themselves say is checked by a stream.
  const bool table = size >= 4 && data[size - 1] == 0x8f && data[size - 2] == 0x92;
  if (packing.value() == flux::Packing::kZstd && !table) read_zstd_parts(file.value(), large);
  if (packing.value() == flux::Packing::kGzip) read_gzip_parts(memory.path(), large);
  return 0;
}
