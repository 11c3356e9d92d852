#include "flux/data/sources/line_stream.h"

#include <utility>

#include "flux/data/criteo.h"
#include "flux/data/lines.h"
#include "flux/data/options.h"

namespace flux {
namespace {

constexpr size_t kReadBytes = 16 << 10;  // at once: little more than what is wanted

}  // namespace

Result<std::unique_ptr<LineStream>> LineStream::open(const std::string& path,
                                                     const PipeOptions& pipe) {
  FLUX_ASSIGN_OR_RETURN(ReadFile file, ReadFile::open(path));
  Packing packing = Packing::kPipe;
  if (pipe.command.empty()) {
    FLUX_ASSIGN_OR_RETURN(packing, find_packing(file));
  }
  std::unique_ptr<LineStream> out(new LineStream(std::move(file), packing));
  FLUX_ASSIGN_OR_RETURN(out->stream_, open_stream(out->file_, packing, pipe));
  return out;
}

void LineStream::read_more() {
  const size_t before = text_.size();
  const uint64_t at = stream_->text_offset();
  text_.resize(before + kReadBytes);
  const auto read = stream_->read(text_.data() + before, kReadBytes);
  text_.resize(before + (stream_->text_offset() - at));  // also what came before a failure
  if (!read.is_ok())
    failure_ = read.status();
  else
    ended_ = read.value() < kReadBytes;
  if (at == 0) text_.erase(0, byte_order_mark_bytes(text_));
}

Result<std::string_view> LineStream::next(uint64_t lines_max) {
  text_.erase(0, std::exchange(used_, 0));
  uint64_t found = 0;
  size_t looked = 0;  // up to here there is no newline behind used_
  while (found < lines_max) {
    const size_t newline = text_.find('\n', looked);
    if (newline != std::string::npos) {
      looked = used_ = newline + 1;
      ++found;
      continue;
    }
    looked = text_.size();
    if (ended_ || !failure_.is_ok()) break;
    if (looked - used_ > kCriteoLineBytesMax) {
      failure_ = line_too_long(file_.path(), lines_ + found + 1);
      break;
    }
    read_more();
  }
  if (ended_ && found < lines_max && used_ < text_.size()) {
    used_ = text_.size();
    ++found;
  }
  if (found == 0 && lines_max > 0) FLUX_RETURN_IF_ERROR(failure_);
  lines_ += found;
  return std::string_view(text_).substr(0, used_);
}

}  // namespace flux
