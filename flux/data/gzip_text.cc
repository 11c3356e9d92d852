#include "flux/data/gzip_text.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace flux {
namespace {

constexpr size_t kInputBytes = 256U << 10;
constexpr size_t kOutputBytes = 256U << 10;
constexpr size_t kWindowBytes = 32U << 10;
constexpr uint64_t kPointEvery = 2U << 20;  // bytes of text
constexpr int kGzipMode = 15 + 16, kRawMode = -15;

// zlib's stream over a file: keeps the input filled and knows its place.
class Inflater {
 public:
  explicit Inflater(const ReadFile& file) : file_(file), input_(kInputBytes) {}
  ~Inflater() {
    if (open_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Status start(uint64_t offset, int mode) {
    next_ = offset;
    stream_.avail_in = 0;
    return restart(mode);
  }
  Status restart(int mode) {
    if (open_) inflateEnd(&stream_);
    open_ = inflateInit2(&stream_, mode) == Z_OK;
    raw_ = mode == kRawMode;
    return open_ ? Status::ok() : error(Code::kIo, "{}: zlib does not start", file_.path());
  }
  // Goes on in the middle: some bits of the byte before, and the text before as dictionary.
  Status prime(const GzipIndex::Point& point) {
    if (point.bits > 0) {
      char byte;
      FLUX_RETURN_IF_ERROR(file_.read_at(point.compressed - 1, &byte, 1));
      inflatePrime(&stream_, point.bits, static_cast<unsigned char>(byte) >> (8 - point.bits));
    }
    inflateSetDictionary(&stream_, reinterpret_cast<const Bytef*>(point.window.data()),
                         static_cast<uInt>(point.window.size()));
    return Status::ok();
  }
  // Inflates into [out, out + bytes) until it is full, a block ends (if `by_block`), or a member
  // ends. *made is what came out; *ended is set behind the last member.
  Status step(char* out, size_t bytes, bool by_block, size_t* made, bool* ended) {
    *made = 0;
    *ended = false;
    FLUX_RETURN_IF_ERROR(refill());
    if (stream_.avail_in == 0) return bad("the file is cut short");
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(bytes);
    const int result = inflate(&stream_, by_block ? Z_BLOCK : Z_NO_FLUSH);
    *made = bytes - stream_.avail_out;
    if (result == Z_STREAM_END) return next_member(ended);
    if (result != Z_OK && result != Z_BUF_ERROR)
      return bad(stream_.msg != nullptr ? stream_.msg : "damaged");
    return Status::ok();
  }
  bool at_block_end() const { return (stream_.data_type & 128) != 0 && (stream_.data_type & 64) == 0; }
  bool at_member_start() const { return member_start_; }
  void note(GzipIndex::Point* point) const {
    point->compressed = place();
    point->bits = member_start_ ? 0 : stream_.data_type & 7;
    point->member_start = member_start_;
  }

 private:
  uint64_t place() const { return next_ - stream_.avail_in; }
  Status bad(const char* what) const {
    return error(Code::kCorrupt, "{}:{}: not good gzip ({})", file_.path(), place(), what);
  }
  Status refill() {
    if (stream_.avail_in > 0 || next_ >= file_.size()) return Status::ok();
    const size_t n = std::min<uint64_t>(kInputBytes, file_.size() - next_);
    FLUX_RETURN_IF_ERROR(file_.read_at(next_, input_.data(), n));
    next_ += n;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(n);
    return Status::ok();
  }
  Status next_member(bool* ended) {
    // In raw mode the member's trailer (8 bytes) is still in the input.
    for (int left = raw_ ? 8 : 0; left > 0; --left) {
      FLUX_RETURN_IF_ERROR(refill());
      if (stream_.avail_in == 0) return bad("the file is cut short");
      ++stream_.next_in;
      --stream_.avail_in;
    }
    FLUX_RETURN_IF_ERROR(refill());
    *ended = stream_.avail_in == 0;
    if (*ended) return Status::ok();
    Bytef* const rest = stream_.next_in;
    const uInt size = stream_.avail_in;
    FLUX_RETURN_IF_ERROR(restart(kGzipMode));
    stream_.next_in = rest;
    stream_.avail_in = size;
    member_start_ = true;
    return Status::ok();
  }

 public:
  void clear_member_start() { member_start_ = false; }

 private:
  const ReadFile& file_;
  std::vector<char> input_;
  z_stream stream_{};
  uint64_t next_ = 0;  // file offset behind the input buffer
  bool open_ = false;
  bool raw_ = false;
  bool member_start_ = true;
};

}  // namespace

Result<std::shared_ptr<const GzipIndex>> inflate_gzip(
    const ReadFile& file, const std::function<Status(std::string_view)>& take) {
  auto index = std::make_shared<GzipIndex>();
  Inflater inflater(file);
  FLUX_RETURN_IF_ERROR(inflater.start(0, kGzipMode));
  std::vector<char> out(kOutputBytes);
  std::vector<char> window;  // the last 32 KiB of text
  uint64_t last_point = 0;
  bool ended = false;
  while (!ended) {
    const bool due = index->points.empty() || index->text_bytes - last_point >= kPointEvery;
    if (due && (inflater.at_member_start() || inflater.at_block_end())) {
      GzipIndex::Point point;
      point.text = last_point = index->text_bytes;
      inflater.note(&point);
      if (!point.member_start) point.window = window;
      index->points.push_back(std::move(point));
    }
    inflater.clear_member_start();
    size_t made = 0;
    FLUX_RETURN_IF_ERROR(inflater.step(out.data(), out.size(), true, &made, &ended));
    FLUX_RETURN_IF_ERROR(take({out.data(), made}));
    index->text_bytes += made;
    window.insert(window.end(), out.data() + (made > kWindowBytes ? made - kWindowBytes : 0),
                  out.data() + made);
    if (window.size() > kWindowBytes)
      window.erase(window.begin(), window.end() - static_cast<long>(kWindowBytes));
  }
  return std::shared_ptr<const GzipIndex>(std::move(index));
}

Status read_gzip_range(const ReadFile& file, const GzipIndex& index, uint64_t begin, char* out,
                       size_t bytes) {
  const auto after = std::upper_bound(
      index.points.begin(), index.points.end(), begin,
      [](uint64_t at, const GzipIndex::Point& point) { return at < point.text; });
  if (after == index.points.begin())
    return error(Code::kCorrupt, "{}: no way into the text at {}", file.path(), begin);
  const GzipIndex::Point& point = *(after - 1);
  Inflater inflater(file);
  FLUX_RETURN_IF_ERROR(inflater.start(point.compressed, point.member_start ? kGzipMode : kRawMode));
  if (!point.member_start) FLUX_RETURN_IF_ERROR(inflater.prime(point));
  std::vector<char> unwanted(kOutputBytes);
  uint64_t at = point.text;
  bool ended = false;
  while (bytes > 0) {
    if (ended) return error(Code::kCorrupt, "{}: the text ends at {}", file.path(), at);
    size_t made = 0;
    if (at < begin) {
      const size_t skip = std::min<uint64_t>(unwanted.size(), begin - at);
      FLUX_RETURN_IF_ERROR(inflater.step(unwanted.data(), skip, false, &made, &ended));
    } else {
      FLUX_RETURN_IF_ERROR(inflater.step(out, bytes, false, &made, &ended));
      out += made;
      bytes -= made;
    }
    at += made;
  }
  return Status::ok();
}

}  // namespace flux
