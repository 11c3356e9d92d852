#include "flux/data/scan.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "flux/base/buffer.h"
#include "flux/data/newlines.h"

namespace flux {
namespace {

constexpr uint64_t kPieceBytes = 64U << 10;   // newlines are counted piece by piece
constexpr uint64_t kChunkBytes = 4U << 20;    // read at once

Status line_too_long(const std::string& path, uint64_t line) {
  return invalid("{}:{}:1: line of more than {} bytes; is this a text file of records?", path, line,
                 kLineBytesMax);
}

// Newlines of every piece of a plain file.
Status count_pieces(const ReadFile& file, unsigned threads, std::vector<uint32_t>* counts) {
  counts->assign((file.size() + kPieceBytes - 1) / kPieceBytes, 0);
  std::atomic<uint64_t> next{0};
  std::vector<Status> results(threads);
  const auto work = [&](unsigned t) {
    Buffer<char> chunk(kChunkBytes);
    while (results[t].is_ok()) {
      const uint64_t begin = next.fetch_add(kChunkBytes);
      if (begin >= file.size()) return;
      const uint64_t size = std::min(kChunkBytes, file.size() - begin);
      results[t] = file.read_at(begin, chunk.data(), size);
      for (uint64_t at = 0; at < size && results[t].is_ok(); at += kPieceBytes)
        (*counts)[(begin + at) / kPieceBytes] = static_cast<uint32_t>(
            count_newlines(chunk.data() + at, std::min(kPieceBytes, size - at)));
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned t = 1; t < threads; ++t) helpers.emplace_back(work, t);
  work(0);
  for (std::thread& helper : helpers) helper.join();
  for (const Status& result : results) FLUX_RETURN_IF_ERROR(result);
  return Status::ok();
}

// A line longer than the limit spans whole pieces without a newline.
Status check_line_lengths(const ReadFile& file, const std::vector<uint32_t>& counts) {
  uint64_t empty_bytes = 0, lines = 0;
  for (const uint32_t count : counts) {
    empty_bytes = count == 0 ? empty_bytes + kPieceBytes : 0;
    lines += count;
    if (empty_bytes > kLineBytesMax) return line_too_long(file.path(), lines + 1);
  }
  return Status::ok();
}

Status find_batch_starts(const ReadFile& file, const std::vector<uint32_t>& counts,
                         uint32_t batch_size, ScannedFile* out) {
  out->batch_starts.push_back(0);
  uint64_t before = 0;  // newlines before this piece
  std::vector<char> piece(kPieceBytes);
  for (size_t i = 0; i < counts.size(); ++i) {
    uint64_t wanted = out->batch_starts.size() * batch_size;  // newline that ends the batch
    const uint64_t begin = i * kPieceBytes;
    const uint64_t size = std::min(kPieceBytes, file.size() - begin);
    if (before + counts[i] >= wanted) FLUX_RETURN_IF_ERROR(file.read_at(begin, piece.data(), size));
    for (; before + counts[i] >= wanted; wanted += batch_size) {
      const uint64_t at = begin + after_newline(piece.data(), size, wanted - before);
      if (at < file.size()) out->batch_starts.push_back(at);
    }
    before += counts[i];
  }
  return Status::ok();
}

Result<ScannedFile> scan_plain(const ReadFile& file, uint32_t batch_size, unsigned threads) {
  ScannedFile out;
  out.bytes = out.text_bytes = file.size();
  std::vector<uint32_t> counts;
  FLUX_RETURN_IF_ERROR(count_pieces(file, threads, &counts));
  FLUX_RETURN_IF_ERROR(check_line_lengths(file, counts));
  for (const uint32_t count : counts) out.records += count;
  char last = '\n';
  if (file.size() > 0) FLUX_RETURN_IF_ERROR(file.read_at(file.size() - 1, &last, 1));
  if (last != '\n') ++out.records;
  FLUX_RETURN_IF_ERROR(find_batch_starts(file, counts, batch_size, &out));
  return out;
}

Result<ScannedFile> scan_gzip(const ReadFile& file, uint32_t batch_size) {
  ScannedFile out;
  out.bytes = file.size();
  out.batch_starts.push_back(0);
  uint64_t line_start = 0, text = 0, lines = 0;
  const auto take = [&](std::string_view piece) -> Status {
    for (size_t at = 0; at < piece.size();) {
      const void* found = std::memchr(piece.data() + at, '\n', piece.size() - at);
      if (found == nullptr) break;
      at = static_cast<size_t>(static_cast<const char*>(found) - piece.data()) + 1;
      line_start = text + at;
      if (++lines % batch_size == 0) out.batch_starts.push_back(line_start);
    }
    text += piece.size();
    return text - line_start > kLineBytesMax ? line_too_long(file.path(), lines + 1) : Status::ok();
  };
  FLUX_ASSIGN_OR_RETURN(out.gzip_index, inflate_gzip(file, take));
  out.text_bytes = text;
  out.records = lines + (line_start < text ? 1 : 0);
  if (out.batch_starts.back() == text && text > 0) out.batch_starts.pop_back();
  return out;
}

}  // namespace

Result<ScannedFile> scan_file(const std::string& path, uint32_t batch_size, unsigned threads) {
  FLUX_ASSIGN_OR_RETURN(const auto file, ReadFile::open(path));
  if (path.ends_with(".gz")) return scan_gzip(*file, batch_size);
  return scan_plain(*file, batch_size, std::max(1U, threads));
}

}  // namespace flux
