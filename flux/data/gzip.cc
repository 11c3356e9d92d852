#include "flux/data/gzip.h"

#include <algorithm>
#include <utility>

namespace flux {
namespace {

constexpr size_t kInputBytes = 256 << 10;
constexpr size_t kSkipBytes = 128 << 10;
constexpr size_t kWindowBytes = 32 << 10;
constexpr int kGzipBits = 15 + 16;
constexpr int kRawBits = -15;

}  // namespace

GzipStream::GzipStream(const ReadFile& file, bool track)
    : file_(file), track_(track), input_(kInputBytes) {
  FLUX_CHECK(inflateInit2(&z_, kGzipBits) == Z_OK, "zlib cannot start");
}

GzipStream::~GzipStream() {
  inflateEnd(&z_);
}

Status GzipStream::corrupt(std::string_view what) const {
  return error(Code::kCorrupt, "{}: gzip data is damaged at byte {}: {}; copy or download it again",
               file_.path(), file_offset(), what);
}

Status GzipStream::start(const GzipPoint& point) {
  z_.avail_in = 0;
  fetched_ = point.file;
  text_ = point.text;
  raw_ = point.raw;
  between_ = !point.raw;
  ended_ = false;
  trailer_left_ = 0;
  if (track_) point_ = point;
  if (!raw_) return Status::ok();
  FLUX_CHECK(inflateReset2(&z_, kRawBits) == Z_OK, "inflateReset2");
  if (point.bits > 0) {
    unsigned char byte = 0;
    FLUX_RETURN_IF_ERROR(file_.read_at(point.file - 1, &byte, 1));
    FLUX_CHECK(inflatePrime(&z_, point.bits, byte >> (8 - point.bits)) == Z_OK, "inflatePrime");
  }
  if (!point.window.empty())
    FLUX_CHECK(inflateSetDictionary(&z_, point.window.data(),
                                    static_cast<uInt>(point.window.size())) == Z_OK,
               "inflateSetDictionary");
  return Status::ok();
}

// Gets more input if there is none left; avail_in stays 0 at the end of the file.
Status GzipStream::refill() {
  if (z_.avail_in > 0 || fetched_ >= file_.size()) return Status::ok();
  const size_t n = std::min<uint64_t>(kInputBytes, file_.size() - fetched_);
  FLUX_RETURN_IF_ERROR(file_.read_at(fetched_, input_.data(), n));
  fetched_ += n;
  z_.next_in = input_.data();
  z_.avail_in = static_cast<uInt>(n);
  return Status::ok();
}

// At the head of a member, at padding with zeros, or at the end.
Status GzipStream::next_member() {
  bool padded = false;
  FLUX_RETURN_IF_ERROR(refill());
  while (z_.avail_in > 0 && *z_.next_in == 0 && file_offset() > 0) {
    padded = true;
    ++z_.next_in;
    --z_.avail_in;
    FLUX_RETURN_IF_ERROR(refill());
  }
  if (z_.avail_in == 0) {
    ended_ = true;
    return Status::ok();
  }
  if (padded) return corrupt("data follows the padding");
  FLUX_CHECK(inflateReset2(&z_, kGzipBits) == Z_OK, "inflateReset2");
  raw_ = false;
  between_ = false;
  if (track_) point_ = GzipPoint{text_, file_offset(), 0, false, {}};
  return Status::ok();
}

Status GzipStream::skip_trailer() {
  while (trailer_left_ > 0) {
    FLUX_RETURN_IF_ERROR(refill());
    if (z_.avail_in == 0) return corrupt("the file ends too early");
    const uInt n = std::min<uInt>(trailer_left_, z_.avail_in);
    z_.next_in += n;
    z_.avail_in -= n;
    trailer_left_ -= n;
  }
  return Status::ok();
}

Status GzipStream::inflate_some() {
  FLUX_RETURN_IF_ERROR(refill());
  if (z_.avail_in == 0) return corrupt("the file ends too early");
  const uInt room = z_.avail_out;
  const int rc = inflate(&z_, track_ ? Z_BLOCK : Z_NO_FLUSH);
  text_ += room - z_.avail_out;
  if (rc == Z_STREAM_END) {
    between_ = true;
    trailer_left_ = raw_ ? 8 : 0;
    return Status::ok();
  }
  if (rc != Z_OK && rc != Z_BUF_ERROR)
    return corrupt(z_.msg != nullptr ? z_.msg : "not a deflate stream");
  const bool at_border = (z_.data_type & 128) != 0 && (z_.data_type & 64) == 0;
  if (track_ && at_border) {
    point_.text = text_;
    point_.file = file_offset();
    point_.bits = z_.data_type & 7;
    point_.raw = true;
    point_.window.resize(kWindowBytes);
    uInt length = 0;
    FLUX_CHECK(inflateGetDictionary(&z_, point_.window.data(), &length) == Z_OK, "dictionary");
    point_.window.resize(length);
  }
  return Status::ok();
}

Result<size_t> GzipStream::read(char* out, size_t size) {
  size_t done = 0;
  while (done < size && !ended_) {
    if (between_) {
      FLUX_RETURN_IF_ERROR(skip_trailer());
      FLUX_RETURN_IF_ERROR(next_member());
      continue;
    }
    z_.next_out = reinterpret_cast<Bytef*>(out + done);
    const auto room = static_cast<uInt>(std::min<size_t>(size - done, 1U << 30));
    z_.avail_out = room;
    FLUX_RETURN_IF_ERROR(inflate_some());
    done += room - z_.avail_out;
  }
  return done;
}

GzipFile::GzipFile(std::string path, std::vector<uint64_t> cuts)
    : path_(std::move(path)), cuts_(std::move(cuts)) {
  points_[0] = std::make_shared<const GzipPoint>();
}

std::shared_ptr<const GzipPoint> GzipFile::nearest(uint64_t begin, uint64_t* cut) const {
  const std::lock_guard lock(mutex_);
  const auto it = std::prev(points_.upper_bound(begin));
  *cut = it->first;
  return it->second;
}

void GzipFile::remember(uint64_t cut, const GzipPoint& point) const {
  {
    const std::lock_guard lock(mutex_);
    if (points_.contains(cut)) return;
  }
  auto copy = std::make_shared<const GzipPoint>(point);
  const std::lock_guard lock(mutex_);
  points_.emplace(cut, std::move(copy));
}

Status GzipFile::read(uint64_t begin, size_t size, char* out) const {
  FLUX_ASSIGN_OR_RETURN(const ReadFile file, ReadFile::open(path_));
  uint64_t known = 0;
  const auto point = nearest(begin, &known);
  GzipStream stream(file, true);
  FLUX_RETURN_IF_ERROR(stream.start(*point));
  const auto ended = [&](uint64_t wanted) {
    return error(Code::kCorrupt, "{}: its text ends at byte {}, {} was expected; scan it again",
                 path_, stream.text_offset(), wanted);
  };
  std::vector<char> skipped(stream.text_offset() < begin ? kSkipBytes : 0);
  auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), known);
  while (stream.text_offset() < begin) {
    const uint64_t target = cut != cuts_.end() ? std::min(*cut, begin) : begin;
    const size_t n = std::min<uint64_t>(skipped.size(), target - stream.text_offset());
    FLUX_ASSIGN_OR_RETURN(const size_t got, stream.read(skipped.data(), n));
    if (got < n) return ended(target);
    if (cut != cuts_.end() && stream.text_offset() == *cut) remember(*cut++, stream.point());
  }
  FLUX_ASSIGN_OR_RETURN(const size_t got, stream.read(out, size));
  if (got < size) return ended(begin + size);
  if (std::binary_search(cuts_.begin(), cuts_.end(), begin + size))
    remember(begin + size, stream.point());
  return Status::ok();
}

}  // namespace flux
