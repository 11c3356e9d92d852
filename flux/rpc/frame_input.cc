#include "flux/rpc/frame_input.h"

#include <algorithm>

#include "flux/rpc/payload.h"

namespace flux {
namespace {

constexpr size_t kScratchBytes = 64U << 10U;

iovec part_of(MutableByteSpan span) {
  return {span.data(), span.size()};
}

}  // namespace

void FrameInput::begin_header() {
  stage_ = Stage::kHeader;
  parts_.assign(1, {header_.data(), header_.size()});
  at_ = 0;
}

void FrameInput::want(size_t max, std::vector<iovec>* out) {
  out->clear();
  if (stage_ == Stage::kDiscard) {
    scratch_.resize(kScratchBytes);
    out->push_back({scratch_.data(), std::min<uint64_t>(kScratchBytes, discard_left_)});
    return;
  }
  for (size_t i = at_; i < parts_.size() && out->size() < max; ++i)
    if (parts_[i].iov_len > 0) out->push_back(parts_[i]);
  if (stage_ == Stage::kBody && out->size() < max) out->push_back({header_.data(), header_.size()});
}

Status FrameInput::advance(size_t bytes) {
  for (;;) {
    bytes -= consume(bytes);
    if (!stage_done()) break;
    FLUX_RETURN_IF_ERROR(end_stage());
  }
  FLUX_CHECK(bytes == 0, "more bytes than were wanted");
  const size_t got = header_.size() - (stage_ == Stage::kHeader ? parts_[0].iov_len : 0);
  if (stage_ == Stage::kHeader && got > 0) return check_magic(std::span(header_).first(got));
  return Status::ok();
}

bool FrameInput::stage_done() const {
  return stage_ == Stage::kDiscard ? discard_left_ == 0 : at_ == parts_.size();
}

size_t FrameInput::consume(size_t bytes) {
  if (stage_ == Stage::kDiscard) {
    const size_t size = std::min<uint64_t>(bytes, discard_left_);
    discard_left_ -= size;
    return size;
  }
  size_t used = 0;
  while (at_ < parts_.size()) {
    iovec& part = parts_[at_];
    const size_t size = std::min(bytes - used, part.iov_len);
    auto* data = static_cast<std::byte*>(part.iov_base);
    if (stage_ == Stage::kBody && at_ >= payload_from_ && size > 0) hash_payload(data, size);
    part.iov_base = data + size;
    part.iov_len -= size;
    used += size;
    if (part.iov_len > 0) break;
    ++at_;
  }
  return used;
}

// A payload that comes in one piece, as most small ones do, needs no streaming.
void FrameInput::hash_payload(const std::byte* data, size_t size) {
  if (frame_.payload_check == kNoCheck) return;
  if (hashed_ == 0 && size == frame_.payload_bytes) {
    payload_check_ = hash_bytes(data, size);
  } else {
    if (hashed_ == 0) hasher_.reset();
    hasher_.update(data, size);
    if (hashed_ + size == frame_.payload_bytes) payload_check_ = hasher_.digest();
  }
  hashed_ += size;
}

Status FrameInput::end_stage() {
  switch (stage_) {
    case Stage::kHeader:
      return begin_frame();
    case Stage::kControl:
      FLUX_RETURN_IF_ERROR(end_control());
      if (!target_.discard) FLUX_RETURN_IF_ERROR(sink_.on_control(frame_, &target_));
      return begin_body(false);
    case Stage::kBody:
    case Stage::kDiscard:
      break;
  }
  return end_frame();
}

Status FrameInput::begin_frame() {
  FLUX_ASSIGN_OR_RETURN(frame_, parse_header(header_, limits_));
  if (version_ && frame_.version != *version_)
    return error(Code::kCorrupt, "frame of version {} on a connection of version {}",
                 frame_.version, *version_);
  target_ = {};
  hashed_ = 0;
  payload_check_ = hash_bytes(nullptr, 0);
  FLUX_RETURN_IF_ERROR(sink_.on_header(frame_, &target_));
  FLUX_CHECK(target_.control.size() == frame_.control_bytes, "the control part needs its place");
  if (!target_.after_control && !target_.discard) return begin_body(true);
  stage_ = Stage::kControl;
  parts_.assign(1, part_of(target_.control));
  at_ = 0;
  return Status::ok();
}

Status FrameInput::begin_body(bool with_control) {
  at_ = 0;
  parts_.clear();
  if (target_.discard) {
    stage_ = Stage::kDiscard;
    discard_left_ = frame_.payload_bytes;
    return Status::ok();
  }
  stage_ = Stage::kBody;
  if (with_control) parts_.push_back(part_of(target_.control));
  payload_from_ = parts_.size();
  for (const MutableByteSpan span : target_.payload) parts_.push_back(part_of(span));
  FLUX_CHECK(total_bytes(std::span<const MutableByteSpan>(target_.payload)) == frame_.payload_bytes,
             "the payload needs its place");
  return Status::ok();
}

Status FrameInput::end_control() {
  return check_part("control", frame_.control_check,
                    hash_bytes(target_.control.data(), target_.control.size()));
}

Status FrameInput::end_frame() {
  if (stage_ == Stage::kBody) {
    if (payload_from_ > 0) FLUX_RETURN_IF_ERROR(end_control());
    if (frame_.payload_check != kNoCheck)
      FLUX_RETURN_IF_ERROR(check_part("payload", frame_.payload_check, payload_check_));
  }
  begin_header();
  return sink_.on_frame(frame_);
}

}  // namespace flux
