// Dataset::scan(): one reading pass that counts lines, then a look at the few places where a block
// begins. Plain files are read in parts by all threads; one that is packed or piped by one.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "flux/base/buffer.h"
#include "flux/base/hash.h"
#include "flux/base/parallel.h"
#include "flux/base/text.h"
#include "flux/data/criteo.h"
#include "flux/data/dataset.h"
#include "flux/data/format.h"
#include "flux/data/frozen_vocabulary.h"
#include "flux/data/lines.h"
#include "flux/data/options.h"
#include "flux/data/sources/batch_hash.h"
#include "flux/data/sources/plain_file.h"
#include "flux/data/sources/text_file.h"
#include "flux/data/sources/text_stream.h"
#include "flux/data/text/csv.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

constexpr uint64_t kChunkBytes = kHashedBytes;  // counted at once; in the second-level cache
constexpr uint64_t kPartChunks = 64;            // read by one thread

struct Chunk {
  uint32_t newlines = 0;
  uint32_t first = 0;  // position of the first newline
  uint32_t last = 0;   // position of the last newline
  uint64_t hash = 0;   // of the text
};

Chunk look_at(const char* text, size_t size) {
  Chunk chunk;
  chunk.hash = hash_bytes(text, size);
  chunk.newlines = static_cast<uint32_t>(count_newlines(text, size));
  if (chunk.newlines == 0) return chunk;
  const auto* first = static_cast<const char*>(std::memchr(text, '\n', size));
  const auto* last = static_cast<const char*>(::memrchr(text, '\n', size));
  chunk.first = static_cast<uint32_t>(first - text);
  chunk.last = static_cast<uint32_t>(last - text);
  return chunk;
}

// Adds up the chunks of one file in their order; refuses a line that is too long.
class LineCounter {
 public:
  Status add(const std::string& path, const Chunk& chunk, uint64_t size) {
    const uint64_t line_end = bytes_ + (chunk.newlines > 0 ? chunk.first : size);
    if (line_end - line_begin_ > kCriteoLineBytesMax) return line_too_long(path, newlines_ + 1);
    if (newlines_ == 0 && chunk.newlines > 0) first_line_bytes_ = bytes_ + chunk.first + 1;
    if (chunk.newlines > 0) line_begin_ = bytes_ + chunk.last + 1;
    newlines_ += chunk.newlines;
    bytes_ += size;
    if (size > 0) content_ = add_chunk_hash(content_, chunk.hash);
    return Status::ok();
  }
  uint64_t newlines() const { return newlines_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t content() const { return content_; }
  // With its newline.
  uint64_t first_line_bytes() const { return newlines_ > 0 ? first_line_bytes_ : bytes_; }
  // A last line without newline is a record too.
  uint64_t records() const { return newlines_ + (line_begin_ < bytes_ ? 1 : 0); }

 private:
  uint64_t newlines_ = 0;
  uint64_t bytes_ = 0;
  uint64_t line_begin_ = 0;
  uint64_t first_line_bytes_ = 0;
  uint64_t content_ = 0;
};

struct FileScan {
  explicit FileScan(ReadFile opened) : file(std::move(opened)) {}
  ReadFile file;
  Packing packing = Packing::kPlain;
  uint64_t mark_bytes = 0;    // of a byte order mark, which is no part of the first line
  uint64_t header_lines = 0;  // before the first record; 0 or 1
  uint64_t header_bytes = 0;
  std::vector<Chunk> chunks;  // plain
  // The first part of plain text that a line is too long for: what is behind it need not be read.
  std::unique_ptr<std::atomic<uint64_t>> last_part =
      std::make_unique<std::atomic<uint64_t>>(UINT64_MAX);
  // Of others: text offset behind every batch_size-th newline, and hashes of the batches.
  std::vector<uint64_t> batch_ends, batch_hashes;
  uint64_t records = 0;
  uint64_t text_bytes = 0;
  uint64_t content = 0;  // hash of the text

  bool plain() const { return packing == Packing::kPlain; }
  void take(const LineCounter& counter) {
    const uint64_t lines = counter.bytes() > mark_bytes ? counter.records() : 0;
    records = lines - std::min(lines, header_lines);
    header_bytes = header_lines > 0 ? counter.first_line_bytes() : mark_bytes;
    text_bytes = counter.bytes();
    content = counter.content();
  }
  uint64_t chunk_bytes(uint64_t i) const {
    return std::min(kChunkBytes, file.size() - i * kChunkBytes);
  }
};

// Geometry is kept as JSON, which holds no other strings.
Status check_path(const std::string& path) {
  if (!nlohmann::json::accept(
          nlohmann::json(path).dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore)) ||
      nlohmann::json::parse(nlohmann::json(path).dump(
          -1, ' ', false, nlohmann::json::error_handler_t::ignore)) != path)
    return invalid("{}: the path is not valid UTF-8; rename the file", path);
  return Status::ok();
}

Result<FileScan> open_file(const std::string& path, const PipeOptions& pipe) {
  FLUX_RETURN_IF_ERROR(check_path(path));
  FLUX_ASSIGN_OR_RETURN(ReadFile file, ReadFile::open(path));
  FileScan scan(std::move(file));
  if (!pipe.command.empty()) {
    scan.packing = Packing::kPipe;
  } else {
    FLUX_ASSIGN_OR_RETURN(scan.packing, find_packing(scan.file));
  }
  if (!scan.plain()) return scan;
  scan.chunks.resize((scan.file.size() + kChunkBytes - 1) / kChunkBytes);
  char first[kByteOrderMark.size()] = {};
  FLUX_RETURN_IF_ERROR(scan.file.read_at(0, first, std::min(sizeof first, scan.file.size())));
  scan.mark_bytes = byte_order_mark_bytes({first, sizeof first});
  return scan;
}

Status check_stop(const std::atomic<bool>* stop) {
  if (stop == nullptr || !stop->load(std::memory_order_relaxed)) return Status::ok();
  return error(Code::kCancelled, "stopped while reading the data");
}

Status count_part(FileScan* scan, uint64_t part) {
  if (part > scan->last_part->load()) return Status::ok();
  Buffer<char> text(kChunkBytes);
  uint64_t without_newline = 0;
  const uint64_t end = std::min<uint64_t>((part + 1) * kPartChunks, scan->chunks.size());
  for (uint64_t i = part * kPartChunks; i < end; ++i) {
    FLUX_RETURN_IF_ERROR(scan->file.read_at(i * kChunkBytes, text.data(), scan->chunk_bytes(i)));
    scan->chunks[i] = look_at(text.data(), scan->chunk_bytes(i));
    without_newline = scan->chunks[i].newlines > 0 ? 0 : without_newline + scan->chunk_bytes(i);
    if (without_newline > kCriteoLineBytesMax) {
      for (uint64_t last = scan->last_part->load();
           part < last && !scan->last_part->compare_exchange_weak(last, part);) {
      }
      break;
    }
  }
  return Status::ok();
}

// The number of the newline behind which the next batch begins, after `before` of them.
uint64_t next_batch_end(uint64_t before, uint64_t header_lines, uint64_t batch_size) {
  const uint64_t lines = before - std::min(before, header_lines);
  return header_lines + (lines / batch_size + 1) * batch_size;
}

// Of text that comes as a stream.
Status count_stream(FileScan* scan, const DataOptions& options, const std::atomic<bool>* stop) {
  const uint32_t batch_size = options.batch_size;
  Buffer<char> text(kChunkBytes);
  FLUX_ASSIGN_OR_RETURN(const auto stream, open_stream(scan->file, scan->packing, options.pipe));
  LineCounter counter;
  BatchHasher hasher;
  for (size_t n = kChunkBytes; n == kChunkBytes;) {
    FLUX_RETURN_IF_ERROR(check_stop(stop));
    FLUX_ASSIGN_OR_RETURN(n, stream->read(text.data(), kChunkBytes));
    const Chunk chunk = look_at(text.data(), n);
    const uint64_t before = counter.newlines();
    const uint64_t base = counter.bytes();
    FLUX_RETURN_IF_ERROR(counter.add(scan->file.path(), chunk, n));
    size_t at = 0;
    uint64_t line = before;
    if (base == 0) at = scan->mark_bytes = byte_order_mark_bytes({text.data(), n});
    if (before < scan->header_lines) {  // the header is in no batch
      at = chunk.newlines > 0 ? chunk.first + 1 : n;
      line = before + (chunk.newlines > 0 ? 1 : 0);
    }
    for (uint64_t cut = next_batch_end(before, scan->header_lines, batch_size);
         cut <= counter.newlines(); cut += batch_size) {
      const size_t begin = at;
      at += find_newline(text.data() + at, n - at, cut - line - 1) + 1;
      line = cut;
      scan->batch_ends.push_back(base + at);
      hasher.add({text.data() + begin, at - begin});
      hasher.end_batch();
    }
    hasher.add({text.data() + at, n - at});
  }
  scan->batch_hashes = hasher.finish();
  scan->take(counter);
  return Status::ok();
}

// The pieces of reading work: a part of a plain file, or the whole of another.
struct Piece {
  FileScan* scan = nullptr;
  uint64_t part = 0;
};

Status count_lines(std::vector<FileScan>* scans, const DataOptions& options, unsigned threads,
                   const std::atomic<bool>* stop) {
  std::vector<Piece> pieces;
  for (FileScan& scan : *scans) {
    const uint64_t parts = (scan.chunks.size() + kPartChunks - 1) / kPartChunks;
    for (uint64_t part = 0; part < (scan.plain() ? parts : 1); ++part)
      pieces.push_back({&scan, part});
  }
  FLUX_RETURN_IF_ERROR(parallel_for(pieces.size(), threads, [&](size_t i) -> Status {
    FLUX_RETURN_IF_ERROR(check_stop(stop));
    return pieces[i].scan->plain() ? count_part(pieces[i].scan, pieces[i].part)
                                   : count_stream(pieces[i].scan, options, stop);
  }));
  for (FileScan& scan : *scans) {
    if (scan.plain()) {
      LineCounter counter;
      for (uint64_t i = 0; i < scan.chunks.size(); ++i)
        FLUX_RETURN_IF_ERROR(counter.add(scan.file.path(), scan.chunks[i], scan.chunk_bytes(i)));
      scan.take(counter);
    }
    if (scan.records == 0)
      return invalid("{}: holds no record; remove it from the data or fill it", scan.file.path());
  }
  return Status::ok();
}

// Where block k of a plain file begins: behind newline number k * block_records, and the header.
struct Cut {
  uint64_t chunk = 0;
  uint64_t nth = 0;  // newline in the chunk, from 0
};

std::vector<Cut> plain_cuts(const FileScan& scan, uint64_t block_records) {
  std::vector<Cut> cuts;
  uint64_t before = 0;
  uint64_t wanted = scan.header_lines + block_records;
  const uint64_t end = scan.header_lines + scan.records;
  for (uint64_t i = 0; i < scan.chunks.size(); ++i) {
    const uint64_t after = before + scan.chunks[i].newlines;
    for (; wanted <= after && wanted < end; wanted += block_records)
      cuts.push_back({i, wanted - before - 1});
    before = after;
  }
  return cuts;
}

// Text offsets where the blocks of one file begin, behind the first.
Status find_cuts(const FileScan& scan, uint32_t per_block, uint32_t batch_size, unsigned threads,
                 std::vector<uint64_t>* out) {
  const uint64_t block_records = uint64_t{per_block} * batch_size;
  if (!scan.plain()) {
    for (uint64_t record = block_records; record < scan.records; record += block_records)
      out->push_back(scan.batch_ends[record / batch_size - 1]);
    return Status::ok();
  }
  const std::vector<Cut> cuts = plain_cuts(scan, block_records);
  std::vector<size_t> groups;  // cuts of one chunk stand together
  for (size_t i = 0; i < cuts.size(); ++i)
    if (i == 0 || cuts[i].chunk != cuts[i - 1].chunk) groups.push_back(i);
  out->resize(cuts.size());
  return parallel_for(groups.size(), threads, [&](size_t g) -> Status {
    const uint64_t chunk = cuts[groups[g]].chunk;
    const size_t size = scan.chunk_bytes(chunk);
    Buffer<char> text(size);
    FLUX_RETURN_IF_ERROR(scan.file.read_at(chunk * kChunkBytes, text.data(), size));
    const size_t end = g + 1 < groups.size() ? groups[g + 1] : cuts.size();
    size_t at = 0;
    uint64_t newline = 0;
    for (size_t i = groups[g]; i < end; ++i) {
      at += find_newline(text.data() + at, size - at, cuts[i].nth - newline) + 1;
      newline = cuts[i].nth + 1;
      if (at > size)
        return error(Code::kIo, "{}: changed while it was read; try again", scan.file.path());
      (*out)[i] = chunk * kChunkBytes + at;
    }
    return Status::ok();
  });
}

// 0 for plain text, which nothing can unpack wrongly.
uint64_t block_hash(const FileScan& scan, size_t first_batch, uint32_t batches) {
  if (scan.plain()) return 0;
  const std::span<const uint64_t> all(scan.batch_hashes);
  return join_batch_hashes(
      all.subspan(first_batch, std::min<size_t>(batches, all.size() - first_batch)));
}

Status cut_file(const FileScan& scan, uint32_t file, uint32_t per_block, unsigned threads,
                Geometry* g) {
  std::vector<uint64_t> begins;
  FLUX_RETURN_IF_ERROR(find_cuts(scan, per_block, g->batch_size, threads, &begins));
  begins.insert(begins.begin(), scan.header_bytes);
  const uint64_t block_records = uint64_t{per_block} * g->batch_size;
  uint64_t first = g->records();
  g->files.push_back({scan.file.path(), scan.file.size(), scan.records, scan.packing,
                      static_cast<uint64_t>(scan.file.modified_ns()), scan.content,
                      reads_in_order(scan.file, scan.packing, scan.text_bytes)});
  uint64_t left = scan.records;
  for (size_t i = 0; i < begins.size(); ++i) {
    const uint64_t end = i + 1 < begins.size() ? begins[i + 1] : scan.text_bytes;
    if (end - begins[i] >= kBlockBytesMax)
      return invalid("{}: a block of {} batches of {} records is {}; lower data.batch_size",
                     scan.file.path(), per_block, g->batch_size, human_bytes(end - begins[i]));
    const uint64_t records = std::min(left, block_records);
    g->blocks.push_back({file, begins[i], end, first, static_cast<uint32_t>(records)});
    g->blocks.back().content = block_hash(scan, i * per_block, per_block);
    first += records;
    left -= records;
  }
  return Status::ok();
}

// A file may have several names, through links.
Status check_named_once(std::span<const std::string> files) {
  std::map<std::filesystem::path, std::string> names;
  for (const std::string& path : files) {
    std::error_code failed;
    std::filesystem::path real = std::filesystem::canonical(path, failed);
    if (failed) real = path;  // whoever opens it says why
    const auto [before, first] = names.emplace(std::move(real), path);
    if (first) continue;
    return before->second == path
               ? invalid("{}: is named twice; name it once", path)
               : invalid("{}: is the same file as {}; name it once", path, before->second);
  }
  return Status::ok();
}

}  // namespace

Status line_too_long(const std::string& path, uint64_t line) {
  return invalid(
      "{}:{}:1: line is longer than {} bytes; is this text with a record in each "
      "line?",
      path, line, kCriteoLineBytesMax);
}

Status check_paths(std::span<const std::string> files) {
  for (const std::string& path : files) FLUX_RETURN_IF_ERROR(check_path(path));
  return check_named_once(files);
}

Result<Geometry> Dataset::scan(std::span<const std::string> files, const DataOptions& options,
                               unsigned threads, const std::atomic<bool>* stop) {
  FLUX_RETURN_IF_ERROR(check_data_options(options));
  if (files.empty()) return invalid("no data files; name at least one");
  FLUX_RETURN_IF_ERROR(check_named_once(files));
  const DataFormat* format = find_format(options.format);
  if (format->scan != nullptr) {
    FLUX_ASSIGN_OR_RETURN(Geometry g, format->scan(files, options, stop));
    number_lines(&g);
    return g;
  }
  FLUX_RETURN_IF_ERROR(with_csv_header(files, options).status());
  FLUX_RETURN_IF_ERROR(check_path(options.vocabulary));
  FLUX_RETURN_IF_ERROR(check_vocabulary(options));
  std::vector<FileScan> scans;
  for (const std::string& path : files) {
    FLUX_ASSIGN_OR_RETURN(FileScan scan, open_file(path, options.pipe));
    scan.header_lines = header_lines_of(options);
    scans.push_back(std::move(scan));
  }
  FLUX_RETURN_IF_ERROR(count_lines(&scans, options, threads, stop));
  uint64_t records = 0;
  for (const FileScan& scan : scans) records += scan.records;
  const uint32_t per_block = block_batches(records, options.batch_size);
  Geometry g;
  g.format = options.format;
  g.pipe = pipe_text(options.pipe);
  g.batch_size = options.batch_size;
  g.shuffle_seed = shuffle_seed_of(options);
  for (uint32_t i = 0; i < scans.size(); ++i)
    FLUX_RETURN_IF_ERROR(cut_file(scans[i], i, per_block, threads, &g));
  FLUX_RETURN_IF_ERROR(freeze_vocabulary(options, &g));
  number_lines(&g);
  return g;
}

}  // namespace flux
