#include "flux/data/sources/kept_text.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace flux {
namespace {

constexpr size_t kSkipBytes = 128 << 10;

}  // namespace

Status KeptText::read_exactly(TextStream* stream, size_t size, char* out) const {
  FLUX_ASSIGN_OR_RETURN(const size_t got, stream->read(out, size));
  if (got == size) return Status::ok();
  return invalid(
      "{}: its text ends at byte {}, where the scan found more: it has changed since; start "
      "afresh to scan it again",
      path_, stream->text_offset());
}

void KeptText::keep_passed(uint64_t begin, std::vector<char> text) {
  const auto [at, fresh] = passed_.try_emplace(begin, std::move(text));
  if (!fresh) return;
  passed_bytes_ += at->second.size();
  while (passed_bytes_ > TextFiles::kPassedBytesMax) {
    passed_bytes_ -= passed_.begin()->second.size();
    passed_.erase(passed_.begin());
  }
}

bool KeptText::take_passed(uint64_t begin, size_t size, char* out) {
  const auto at = passed_.find(begin);
  if (at == passed_.end() || at->second.size() != size) return false;
  std::memcpy(out, at->second.data(), size);
  passed_bytes_ -= size;
  passed_.erase(at);
  return true;
}

// Over blocks that others may still come for, and over what lies further back.
Status KeptText::skip(TextStream* stream, uint64_t begin) {
  std::vector<char> text;
  while (stream->text_offset() < begin) {
    const uint64_t from = stream->text_offset();
    const auto next = std::upper_bound(cuts_.begin(), cuts_.end(), from);
    const uint64_t to = next == cuts_.end() ? begin : std::min(*next, begin);
    const bool block = std::binary_search(cuts_.begin(), cuts_.end(), from) &&
                       begin - from <= TextFiles::kPassedBytesMax;
    text.resize(block ? to - from : std::min<uint64_t>(kSkipBytes, to - from));
    FLUX_RETURN_IF_ERROR(read_exactly(stream, text.size(), text.data()));
    if (block) keep_passed(from, std::exchange(text, {}));
  }
  return Status::ok();
}

Status KeptText::read_near(uint64_t entry, uint64_t begin, size_t size, char* out) {
  FLUX_ASSIGN_OR_RETURN(const auto stream, opener_->open(entry));
  std::vector<char> before(std::min<uint64_t>(kSkipBytes, begin - entry));
  while (stream->text_offset() < begin) {
    const size_t n = std::min<uint64_t>(before.size(), begin - stream->text_offset());
    FLUX_RETURN_IF_ERROR(read_exactly(stream.get(), n, before.data()));
  }
  return read_exactly(stream.get(), size, out);
}

Status KeptText::read_kept(uint64_t entry, uint64_t begin, size_t size, char* out) {
  const uint64_t at = stream_ == nullptr ? UINT64_MAX : stream_->text_offset();
  if (at > begin || at < entry) {
    stream_.reset();
    FLUX_ASSIGN_OR_RETURN(stream_, opener_->open(entry));
  }
  FLUX_RETURN_IF_ERROR(skip(stream_.get(), begin));
  return read_exactly(stream_.get(), size, out);
}

Status KeptText::read(uint64_t begin, size_t size, char* out) {
  const uint64_t entry = opener_->nearest(begin);
  if (entry > 0 && begin - entry <= kNearBytes) return read_near(entry, begin, size, out);
  const std::lock_guard lock(mutex_);
  if (take_passed(begin, size, out)) return Status::ok();
  Status status = read_kept(entry, begin, size, out);
  const bool last = begin >= (cuts_.empty() ? 0 : cuts_.back());
  if (!status.is_ok() || last) stream_.reset();
  return status;
}

void KeptText::drop() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  stream_.reset();
  passed_.clear();
  passed_bytes_ = 0;
}

}  // namespace flux
