#include "flux/main/sample_text.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include "flux/base/check.h"
#include "flux/data/bad_records.h"
#include "flux/data/blocks/writer.h"
#include "flux/data/lines.h"
#include "flux/data/sources/text_stream.h"
#include "flux/data/tools/whole_data.h"
#include "flux/storage/read_file.h"

namespace flux {
namespace {

constexpr size_t kFilesMax = 16;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

struct FileSample {
  uint64_t lines = 0;
  uint64_t bytes = 0;  // of the file on disk that these lines take
  bool whole = false;
};

// Up to the end of the `lines`-th line; all of it if there are fewer.
std::string_view first_lines(std::string_view text, uint64_t lines, uint64_t* found) {
  size_t end = 0;
  for (*found = 0; *found < lines; ++*found) {
    const size_t newline = text.find('\n', end);
    if (newline == std::string_view::npos) return text;
    end = newline + 1;
  }
  return text.substr(0, end);
}

// What a file has before its first record.
struct Header {
  bool inside = false;  // its end is still to come
  bool copy = false;
};

Status write_to(std::FILE* out, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size())
    return errno_status("cannot write", errno);
  return Status::ok();
}

// The part of `text` behind the header, of which this may be the beginning or the middle.
Result<std::string_view> behind_header(std::string_view text, Header* header, std::FILE* out) {
  if (!header->inside) return text;
  const size_t newline = text.find('\n');
  const size_t end = newline == std::string_view::npos ? text.size() : newline + 1;
  header->inside = newline == std::string_view::npos;
  if (header->copy) FLUX_RETURN_IF_ERROR(write_to(out, text.substr(0, end)));
  return text.substr(end);
}

Result<FileSample> copy_lines(const std::string& path, const PipeOptions& pipe, Header header,
                              uint64_t lines_max, std::FILE* out) {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
  Packing packing = Packing::kPipe;
  if (pipe.command.empty()) {
    FLUX_ASSIGN_OR_RETURN(packing, find_packing(file));
  }
  FLUX_ASSIGN_OR_RETURN(const auto in, open_stream(file, packing, pipe));
  FileSample sample;
  uint64_t text = 0;
  std::vector<char> buffer(1 << 16);
  bool at_end = true;  // of a line
  size_t n = buffer.size();
  std::string_view some, here;
  while (sample.lines < lines_max && n == buffer.size()) {
    FLUX_ASSIGN_OR_RETURN(n, in->read(buffer.data(), buffer.size()));
    uint64_t found = 0;
    std::string_view read(buffer.data(), n);
    if (in->text_offset() == n) read.remove_prefix(byte_order_mark_bytes(read));
    FLUX_ASSIGN_OR_RETURN(here, behind_header(read, &header, out));
    some = first_lines(here, lines_max - sample.lines, &found);
    FLUX_RETURN_IF_ERROR(write_to(out, some));
    text += some.size();
    if (!some.empty()) at_end = some.back() == '\n';
    sample.lines += found;
  }
  if (!at_end) {  // the last line of a file needs no newline; the next file begins a line
    std::fputc('\n', out);
    ++sample.lines;
  }
  char next = 0;
  size_t more = here.size() - some.size();
  if (more == 0 && n == buffer.size()) {
    FLUX_ASSIGN_OR_RETURN(more, in->read(&next, 1));
  }
  sample.whole = more == 0;
  sample.bytes = packing == Packing::kPlain ? text : in->file_offset();
  return sample;
}

}  // namespace

Result<SampledText> sample_text(std::span<const std::string> files, const PipeOptions& pipe,
                                bool headers, uint64_t lines_max, const std::string& out) {
  const std::unique_ptr<std::FILE, CloseFile> to(std::fopen(out.c_str(), "wbx"));
  if (!to) return errno_status("cannot create " + out, errno);
  SampledText sum;
  const size_t taken = std::min(files.size(), kFilesMax);
  double sampled_bytes = 0, known_lines = 0, rest_bytes = 0;
  std::vector<bool> looked(files.size());
  for (size_t i = 0; i < taken && sum.lines < lines_max; ++i) {
    const size_t at = i * files.size() / taken;
    // What earlier files did not have, later ones may give.
    const uint64_t share = (lines_max - sum.lines + taken - i - 1) / (taken - i);
    FLUX_ASSIGN_OR_RETURN(
        const FileSample one,
        copy_lines(files[at], pipe, {headers, headers && i == 0}, share, to.get()));
    looked[at] = one.whole;
    const uint64_t header = headers ? 1 : 0;
    sum.pieces.push_back({files[at], one.lines, header + sum.lines + 1, header + 1, at});
    sum.lines += one.lines;
    sampled_bytes += static_cast<double>(one.bytes);
    if (one.whole) known_lines += static_cast<double>(one.lines);
  }
  for (size_t i = 0; i < files.size(); ++i) {
    std::error_code failed;
    const uint64_t bytes = std::filesystem::file_size(files[i], failed);
    if (failed) return errno_status("cannot look at " + files[i], failed.value());
    sum.file_bytes += bytes;
    if (!looked[i]) rest_bytes += static_cast<double>(bytes);
  }
  sum.whole = rest_bytes == 0;
  const double per_byte = sampled_bytes > 0 ? static_cast<double>(sum.lines) / sampled_bytes : 0;
  sum.lines_in_all = static_cast<uint64_t>(std::llround(known_lines + rest_bytes * per_byte));
  sum.lines_in_all = std::max(sum.lines_in_all, sum.lines);
  if (std::fflush(to.get()) != 0) return errno_status("cannot write " + out, errno);
  return sum;
}

namespace {

// The first blocks, which have `records_max` records if there are so many.
void keep_first(uint64_t records_max, Geometry* geometry) {
  for (DataFile& file : geometry->files) file.records = 0;
  uint64_t records = 0;
  size_t blocks = 0;
  for (; blocks < geometry->blocks.size() && records < records_max; ++blocks) {
    const DataBlock& block = geometry->blocks[blocks];
    geometry->files[block.file].records += block.records;
    records += block.records;
  }
  geometry->blocks.resize(blocks);
}

}  // namespace

Result<SampledText> sample_records(std::span<const std::string> files, uint64_t records_max,
                                   const std::string& out, DataOptions* options) {
  SampledText sum;
  FLUX_ASSIGN_OR_RETURN(Geometry geometry, Dataset::scan(files, *options, 1));
  sum.lines_in_all = geometry.records();
  keep_first(records_max + std::min(options->bad_records, records_max), &geometry);
  if (options->bad_records > 0) {
    FLUX_ASSIGN_OR_RETURN(const auto bad, set_aside_bad_records(*options, 1, nullptr, &geometry));
    for (const BadRecord& one : bad) sum.set_aside.push_back(one.why.message());
    sum.lines_in_all -= bad.size();
  }
  FLUX_ASSIGN_OR_RETURN(const WholeData data,
                        WholeData::open_cut(std::move(geometry), *options, 1));
  FLUX_ASSIGN_OR_RETURN(const auto writer, BlockFileWriter::create(out, data.schema()));
  uint64_t left = records_max;
  const Status status = data.read([&](const Batch& batch) -> Status {
    std::vector<uint32_t> some(std::min<uint64_t>(batch.size, left));
    std::iota(some.begin(), some.end(), 0);
    FLUX_RETURN_IF_ERROR(writer->add(batch, some));
    left -= some.size();
    return left > 0 ? Status::ok() : error(Code::kCancelled, "enough");
  });
  if (!status.is_ok() && status.code() != Code::kCancelled) return status;
  FLUX_RETURN_IF_ERROR(writer->finish());
  *options = block_file_options(*options);
  sum.lines = writer->records();
  sum.whole = sum.lines == sum.lines_in_all;
  for (const std::string& path : files) {
    FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path));
    sum.file_bytes += file.size();
    sum.pieces.push_back({path});
  }
  return sum;
}

const SamplePiece* piece_of_line(const SampledText& taken, uint64_t line) {
  for (const SamplePiece& piece : taken.pieces)
    if (line >= piece.first_in_sample && line - piece.first_in_sample < piece.lines) return &piece;
  return nullptr;
}

namespace {

// The place in its own file of what a message calls line `line` of a sample; "": it is in none.
std::string own_place(const SampledText& taken, uint64_t line) {
  const SamplePiece* piece = piece_of_line(taken, line);
  if (piece == nullptr) return "";
  return fmt::format("{}:{}", piece->path, line - piece->first_in_sample + piece->first_in_file);
}

// Of a text that goes on behind the name of a sample: ":LINE:". 0: it does not.
uint64_t line_at(std::string_view text, size_t* bytes) {
  uint64_t line = 0;
  if (!text.starts_with(':')) return 0;
  const auto [end, wrong] = std::from_chars(text.data() + 1, text.data() + text.size(), line);
  if (wrong != std::errc() || end == text.data() + text.size() || *end != ':') return 0;
  *bytes = static_cast<size_t>(end - text.data());
  return line;
}

}  // namespace

std::string in_own_files(const SampledText& taken, const std::string& sample,
                         const std::string& message) {
  std::string all = "a sample of " + (taken.pieces.empty() ? "nothing" : taken.pieces[0].path);
  if (taken.pieces.size() > 1) all += fmt::format(" and {} more file(s)", taken.pieces.size() - 1);
  std::string out;
  std::string_view rest = message;
  for (size_t at = rest.find(sample); at != std::string_view::npos; at = rest.find(sample)) {
    out += rest.substr(0, at);
    rest.remove_prefix(at + sample.size());
    size_t bytes = 0;
    const uint64_t line = line_at(rest, &bytes);
    const std::string place = line == 0 ? "" : own_place(taken, line);
    if (!place.empty()) rest.remove_prefix(bytes);
    out += place.empty() ? all : place;
  }
  return out.append(rest);
}

}  // namespace flux
