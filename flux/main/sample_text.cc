#include "flux/main/sample_text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include <zlib.h>

#include "flux/base/check.h"

namespace flux {
namespace {

constexpr size_t kFilesMax = 16;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(gzFile_s* file) const { gzclose(file); }
};

struct FileSample {
  uint64_t lines = 0;
  uint64_t bytes = 0;  // of the file on disk that these lines take
  bool whole = false;
};

// gzip's reader takes plain text as it is.
Result<FileSample> copy_lines(const std::string& path, uint64_t lines_max, std::FILE* out) {
  const std::unique_ptr<gzFile_s, CloseFile> in(gzopen(path.c_str(), "rb"));
  if (!in) return errno_status("cannot open " + path, errno);
  FileSample sample;
  uint64_t text = 0;
  std::vector<char> buffer(1 << 16);
  bool at_end = true;  // of a line
  while (sample.lines < lines_max && gzgets(in.get(), buffer.data(), 1 << 16) != nullptr) {
    const size_t n = std::strlen(buffer.data());
    if (std::fwrite(buffer.data(), 1, n, out) != n) return errno_status("cannot write", errno);
    text += n;
    at_end = buffer[n - 1] == '\n';
    sample.lines += at_end ? 1 : 0;
  }
  int failed = Z_OK;
  const char* why = gzerror(in.get(), &failed);
  if (failed != Z_OK && failed != Z_STREAM_END)
    return error(failed == Z_ERRNO ? Code::kIo : Code::kCorrupt, "{}: {}", path, why);
  if (!at_end) {  // the last line of a file needs no newline; the next file begins a line
    std::fputc('\n', out);
    ++sample.lines;
  }
  sample.whole = sample.lines < lines_max || gzgetc(in.get()) == -1;
  sample.bytes = gzdirect(in.get()) != 0 ? text : static_cast<uint64_t>(gzoffset(in.get()));
  return sample;
}

}  // namespace

Result<SampledText> sample_text(std::span<const std::string> files, uint64_t lines_max,
                                const std::string& out) {
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
    FLUX_ASSIGN_OR_RETURN(const FileSample one, copy_lines(files[at], share, to.get()));
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
