#include "flux/main/sample_text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "flux/base/check.h"
#include "flux/data/sources/text_stream.h"
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

Result<FileSample> copy_lines(const std::string& path, const PipeOptions& pipe, uint64_t lines_max,
                              std::FILE* out) {
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
  std::string_view some;
  while (sample.lines < lines_max && n == buffer.size()) {
    FLUX_ASSIGN_OR_RETURN(n, in->read(buffer.data(), buffer.size()));
    uint64_t found = 0;
    some = first_lines({buffer.data(), n}, lines_max - sample.lines, &found);
    if (std::fwrite(some.data(), 1, some.size(), out) != some.size())
      return errno_status("cannot write", errno);
    text += some.size();
    if (!some.empty()) at_end = some.back() == '\n';
    sample.lines += found;
  }
  if (!at_end) {  // the last line of a file needs no newline; the next file begins a line
    std::fputc('\n', out);
    ++sample.lines;
  }
  char next = 0;
  size_t more = n - some.size();
  if (more == 0 && n == buffer.size()) {
    FLUX_ASSIGN_OR_RETURN(more, in->read(&next, 1));
  }
  sample.whole = more == 0;
  sample.bytes = packing == Packing::kPlain ? text : in->file_offset();
  return sample;
}

}  // namespace

Result<SampledText> sample_text(std::span<const std::string> files, const PipeOptions& pipe,
                                uint64_t lines_max, const std::string& out) {
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
    FLUX_ASSIGN_OR_RETURN(const FileSample one, copy_lines(files[at], pipe, share, to.get()));
    looked[at] = one.whole;
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

}  // namespace flux
