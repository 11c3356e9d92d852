#include "flux/main/text_out.h"

#include <cerrno>
#include <cstdio>
#include <utility>

namespace flux {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

}  // namespace

TextOut::TextOut(std::unique_ptr<PiecewiseFile> file)
    : file_(std::move(file)), packer_(file_ ? file_->packing() : Packing::kPlain) {}

Result<std::unique_ptr<TextOut>> TextOut::create(const std::string& named) {
  if (named == kStandardOutput) return std::unique_ptr<TextOut>(new TextOut(nullptr));
  FLUX_ASSIGN_OR_RETURN(auto file, PiecewiseFile::create(named));
  return std::unique_ptr<TextOut>(new TextOut(std::move(file)));
}

Status TextOut::write(std::string_view text) {
  waiting_ += text;
  return waiting_.size() < kPieceBytes ? Status::ok() : flush();
}

Status TextOut::flush() {
  if (to_screen()) {
    if (std::fwrite(waiting_.data(), 1, waiting_.size(), stdout) != waiting_.size() ||
        std::fflush(stdout) != 0)
      return errno_status("cannot write to standard output", errno);
    bytes_ += waiting_.size();
  } else if (!waiting_.empty()) {
    FLUX_ASSIGN_OR_RETURN(const PiecePacker::Piece piece, packer_.pack(waiting_));
    bytes_ += piece.bytes.size();
    FLUX_RETURN_IF_ERROR(file_->append(piece));  // a plain piece is the text itself
  }
  waiting_.clear();
  return Status::ok();
}

Status TextOut::finish() {
  FLUX_RETURN_IF_ERROR(flush());
  return to_screen() ? Status::ok() : file_->commit();
}

std::FILE* told_beside(const std::string& out) {
  return out == kStandardOutput || out == "/dev/stdout" ? stderr : stdout;
}

}  // namespace flux
