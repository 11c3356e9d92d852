// find_zstd_points(): where the frames of a file are, by its table or by the heads of its frames.
#include <algorithm>
#include <cstring>

#include <zstd.h>

#include "flux/data/sources/zstd_stream.h"

namespace flux {
namespace {

constexpr uint32_t kSkippableMagic = 0x184D2A50;
constexpr uint32_t kTableMagic = 0x184D2A5E;   // of the skippable frame with the table
constexpr uint32_t kFooterMagic = 0x8F92EAB1;  // the last bytes of a seekable file
constexpr uint64_t kFooterBytes = 9, kSkippableHeadBytes = 8;
constexpr uint64_t kFrameHeadBytesMax = 18;  // magic, descriptor, window, dictionary, content size
constexpr uint64_t kBlockHeadBytes = 3;
constexpr uint64_t kHeadsMax =
    1 << 22;  // looked at: a file of tiny frames is not walked to its end

template <typename T>
T load_at(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

class Points {
 public:
  explicit Points(uint64_t apart) : apart_(apart) { found_.emplace_back(); }
  void add(uint64_t text, uint64_t file) {
    if (text - found_.back().text >= std::max<uint64_t>(apart_, 1)) found_.push_back({text, file});
  }
  std::vector<ZstdPoint> take() { return std::move(found_); }

 private:
  const uint64_t apart_;
  std::vector<ZstdPoint> found_;
};

// The table of the seekable format; false: there is none, or it does not fit the file.
bool read_table(const ReadFile& file, Points* points) {
  unsigned char footer[kFooterBytes] = {}, head[kSkippableHeadBytes] = {};
  const uint64_t size = file.size();
  if (size < kFooterBytes + kSkippableHeadBytes ||
      !file.read_at(size - kFooterBytes, footer, kFooterBytes).is_ok() ||
      load_at<uint32_t>(footer + 5) != kFooterMagic)
    return false;
  const uint64_t entry = (footer[4] & 0x80) != 0 ? 12 : 8;
  const uint64_t bytes = entry * load_at<uint32_t>(footer);
  if (bytes + kFooterBytes + kSkippableHeadBytes > size) return false;
  const uint64_t table = size - kFooterBytes - bytes - kSkippableHeadBytes;
  if (!file.read_at(table, head, sizeof head).is_ok() || load_at<uint32_t>(head) != kTableMagic ||
      load_at<uint32_t>(head + 4) != bytes + kFooterBytes)
    return false;
  std::vector<unsigned char> entries(bytes);
  if (!file.read_at(table + sizeof head, entries.data(), bytes).is_ok()) return false;
  uint64_t in_file = 0, in_text = 0;
  for (uint64_t at = 0; at < bytes; at += entry) {
    points->add(in_text, in_file);
    in_file += load_at<uint32_t>(entries.data() + at);
    in_text += load_at<uint32_t>(entries.data() + at + 4);
  }
  return in_file == table;
}

// Bytes of a frame's head, from its descriptor.
uint64_t head_bytes(unsigned char descriptor) {
  constexpr uint64_t kDictionaryBytes[] = {0, 1, 2, 4};
  constexpr uint64_t kContentBytes[] = {0, 2, 4, 8};
  const bool single = (descriptor & 0x20) != 0;
  const uint64_t content = kContentBytes[descriptor >> 6];
  return 5 + (single ? 0 : 1) + kDictionaryBytes[descriptor & 3] +
         (content == 0 && single ? 1 : content);
}

// Where the frame that begins at `at` ends; 0: the file is damaged there, or has too many heads.
uint64_t frame_end(const ReadFile& file, uint64_t at, unsigned char descriptor, uint64_t* heads) {
  at += head_bytes(descriptor);
  for (bool last = false; !last;) {
    unsigned char head[4] = {};
    if (++*heads > kHeadsMax || at + kBlockHeadBytes > file.size() ||
        !file.read_at(at, head, kBlockHeadBytes).is_ok())
      return 0;
    const auto bits = load_at<uint32_t>(head);
    last = (bits & 1) != 0;
    const bool repeated = ((bits >> 1) & 3) == 1;
    at += kBlockHeadBytes + (repeated ? 1 : bits >> 3);
  }
  return at + ((descriptor & 4) != 0 ? 4 : 0);
}

void walk_frames(const ReadFile& file, Points* points) {
  uint64_t at = 0, text = 0, heads = 0;
  while (at + 5 <= file.size() && ++heads <= kHeadsMax) {
    unsigned char head[kFrameHeadBytesMax] = {};
    const size_t n = std::min<uint64_t>(sizeof head, file.size() - at);
    if (!file.read_at(at, head, n).is_ok()) return;
    if ((load_at<uint32_t>(head) & 0xFFFFFFF0U) == kSkippableMagic) {
      at += kSkippableHeadBytes + load_at<uint32_t>(head + 4);
      continue;
    }
    points->add(text, at);
    const unsigned long long content = ZSTD_getFrameContentSize(head, n);
    if (content == ZSTD_CONTENTSIZE_UNKNOWN || content == ZSTD_CONTENTSIZE_ERROR ||
        content > UINT64_MAX / 2 - text)
      return;
    text += content;
    at = frame_end(file, at, head[4], &heads);
    if (at == 0) return;
  }
}

}  // namespace

std::vector<ZstdPoint> find_zstd_points(const ReadFile& file, uint64_t apart) {
  Points by_table(apart);
  if (read_table(file, &by_table)) return by_table.take();
  Points by_heads(apart);
  walk_frames(file, &by_heads);
  return by_heads.take();
}

}  // namespace flux
