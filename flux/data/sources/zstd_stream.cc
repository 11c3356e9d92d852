#include "flux/data/sources/zstd_stream.h"

#include <algorithm>

#include <zstd.h>
#include <zstd_errors.h>

#include "flux/base/text.h"

namespace flux {
namespace {

constexpr size_t kInputBytes = 256 << 10;
constexpr size_t kFrameHeadBytesMax = 18;

}  // namespace

struct ZstdStream::Decoder {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  Decoder() {
    FLUX_CHECK(context != nullptr, "zstd cannot start");
    const size_t set = ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kZstdWindowLogMax);
    FLUX_CHECK(!ZSTD_isError(set), "zstd refuses a window of 2^{}", kZstdWindowLogMax);
  }
  ~Decoder() { ZSTD_freeDCtx(context); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

ZstdStream::ZstdStream(const ReadFile& file, const ZstdPoint& point)
    : file_(file), decoder_(std::make_unique<Decoder>()), fetched_(point.file), text_(point.text) {}

ZstdStream::~ZstdStream() = default;

Status ZstdStream::corrupt(std::string_view what) const {
  return error(Code::kCorrupt, "{}: zstd data is damaged at byte {}: {}; copy or download it again",
               file_.path(), file_offset(), what);
}

Status ZstdStream::refused(size_t code) const {
  switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_frameParameter_windowTooLarge:
      return invalid(
          "{}: its zstd window is larger than {}, the most that is read; pack it anew with a "
          "smaller "
          "one (zstd --long={} or less)",
          file_.path(), human_bytes(kZstdWindowBytesMax), kZstdWindowLogMax);
    case ZSTD_error_dictionary_wrong:
      return invalid(
          "{}: was packed with a zstd dictionary, which is not read; pack it without one",
          file_.path());
    case ZSTD_error_prefix_unknown:
      return corrupt("no zstd frame begins here");
    default:
      return corrupt(ZSTD_getErrorName(code));
  }
}

// Gets more input if there is none left; none at the end of the file.
Status ZstdStream::refill() {
  if (used_ < input_.size() || fetched_ >= file_.size()) return Status::ok();
  input_.resize(std::min<uint64_t>(kInputBytes, file_.size() - fetched_));
  FLUX_RETURN_IF_ERROR(file_.read_at(fetched_, input_.data(), input_.size()));
  fetched_ += input_.size();
  used_ = 0;
  return Status::ok();
}

// The library does not hold a stream to what its frames promise, but readers find frames by it.
Status ZstdStream::begin_frame() {
  char head[kFrameHeadBytesMax] = {};
  const size_t n = std::min<uint64_t>(sizeof head, file_.size() - file_offset());
  FLUX_RETURN_IF_ERROR(file_.read_at(file_offset(), head, n));
  frame_promised_ = ZSTD_getFrameContentSize(head, n);
  if (frame_promised_ == ZSTD_CONTENTSIZE_ERROR) frame_promised_ = ZSTD_CONTENTSIZE_UNKNOWN;
  frame_text_ = text_;
  return Status::ok();
}

Status ZstdStream::end_frame() const {
  if (frame_promised_ == ZSTD_CONTENTSIZE_UNKNOWN || frame_promised_ == text_ - frame_text_)
    return Status::ok();
  return corrupt(
      fmt::format("a frame of {} bytes that promised {}", text_ - frame_text_, frame_promised_));
}

Result<size_t> ZstdStream::read(char* out, size_t size) {
  ZSTD_outBuffer to{out, size, 0};
  while (to.pos < size) {
    FLUX_RETURN_IF_ERROR(refill());
    ZSTD_inBuffer from{input_.data(), input_.size(), used_};
    const bool ended = from.pos == from.size;
    if (ended && !in_frame_) break;
    if (!in_frame_) FLUX_RETURN_IF_ERROR(begin_frame());
    const size_t before = to.pos;
    const size_t left = ZSTD_decompressStream(decoder_->context, &to, &from);
    used_ = from.pos;
    text_ += to.pos - before;
    if (ZSTD_isError(left)) return refused(left);
    in_frame_ = left != 0;
    if (!in_frame_) FLUX_RETURN_IF_ERROR(end_frame());
    if (ended && in_frame_ && to.pos == before) return corrupt("the file ends too early");
  }
  return to.pos;
}

}  // namespace flux
