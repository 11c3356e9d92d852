#include "flux/data/piecewise_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr int kLevel = 1;
// Magic, deflate, no flags, no time, "fastest", unknown system: nothing that varies.
constexpr std::string_view kGzipHeader("\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff", 10);
constexpr std::string_view kLastBlock("\x03\x00", 2);  // an empty deflate block marked as the last

void put_u32(uint32_t value, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8) out->push_back(static_cast<char>(value >> shift));
}

}  // namespace

struct PiecePacker::Deflater {
  z_stream stream{};
  bool ready = false;
};

struct PiecePacker::Zstd {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  Zstd() = default;
  ~Zstd() { ZSTD_freeCCtx(context); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
};

PiecePacker::PiecePacker(Packing packing) {
  if (packing == Packing::kZstd) zstd_ = std::make_unique<Zstd>();
  if (packing != Packing::kGzip) return;
  deflater_ = std::make_unique<Deflater>();
  // Negative window bits: raw deflate, so that pieces join into one member.
  deflater_->ready =
      deflateInit2(&deflater_->stream, kLevel, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK;
}

PiecePacker::~PiecePacker() {
  if (deflater_ && deflater_->ready) deflateEnd(&deflater_->stream);
}

Result<PiecePacker::Piece> PiecePacker::pack(std::string_view plain) {
  if (zstd_) return pack_zstd(plain);
  if (!deflater_) return Piece{plain, plain.size(), 0};
  z_stream& stream = deflater_->stream;
  if (!deflater_->ready || deflateReset(&stream) != Z_OK)
    return error(Code::kIo, "zlib cannot start compressing: out of memory?");
  packed_.resize(deflateBound(&stream, plain.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed_.data());
  stream.avail_out = static_cast<uInt>(packed_.size());
  // A sync flush ends on a whole byte without ending the stream: the next piece follows directly.
  const int result = deflate(&stream, Z_SYNC_FLUSH);
  if (result != Z_OK || stream.avail_in != 0 || stream.avail_out == 0)
    return error(Code::kIo, "zlib failed to compress {} bytes (result {})", plain.size(), result);
  const size_t size = packed_.size() - stream.avail_out;
  const uLong crc = crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(plain.data()),
                          static_cast<uInt>(plain.size()));
  return Piece{{packed_.data(), size}, plain.size(), static_cast<uint32_t>(crc)};
}

// A frame that says how much text it holds, so that readers can enter it, and its check sum.
Result<PiecePacker::Piece> PiecePacker::pack_zstd(std::string_view plain) {
  if (zstd_->context == nullptr) return error(Code::kIo, "zstd cannot start: out of memory?");
  ZSTD_CCtx_setParameter(zstd_->context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(zstd_->context, ZSTD_c_checksumFlag, 1);
  packed_.resize(ZSTD_compressBound(plain.size()));
  const size_t size =
      ZSTD_compress2(zstd_->context, packed_.data(), packed_.size(), plain.data(), plain.size());
  if (ZSTD_isError(size))
    return error(Code::kIo, "zstd failed to compress {} bytes: {}", plain.size(),
                 ZSTD_getErrorName(size));
  return Piece{{packed_.data(), size}, plain.size(), 0};
}

PiecewiseFile::PiecewiseFile(std::string path, int fd, bool in_place)
    : path_(std::move(path)),
      in_place_(in_place),
      aside_(in_place_ ? path_ : path_ + std::string(kTemporarySuffix)),
      packing_(packing_by_name(path_)),
      fd_(fd) {}

PiecewiseFile::~PiecewiseFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!in_place_) ::unlink(aside_.c_str());
}

Result<std::unique_ptr<PiecewiseFile>> PiecewiseFile::create(const std::string& named) {
  if (named.empty()) return invalid("no file to write was named");
  // A pipe behind /dev/stdout has no path of its own: it is opened by the name that was given.
  const bool in_place = named == kStandardOutput || is_special_file(named);
  const std::string path = in_place ? named : resolve_links(named);
  if (is_folder(path)) return invalid("cannot write {}: it is a folder; name a file in it", path);
  const std::string aside = in_place ? path : path + std::string(kTemporarySuffix);
  const int create = in_place ? 0 : O_CREAT | O_TRUNC;
  const int fd = path == kStandardOutput
                     ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                     : ::open(aside.c_str(), O_WRONLY | O_CLOEXEC | create, 0644);
  if (fd < 0) return errno_status("cannot create " + aside, errno);
  std::unique_ptr<PiecewiseFile> file(new PiecewiseFile(path, fd, in_place));
  if (file->packing_ == Packing::kGzip) FLUX_RETURN_IF_ERROR(file->write(kGzipHeader));
  return file;
}

Status PiecewiseFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status("cannot write " + aside_, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return Status::ok();
}

Status PiecewiseFile::append(const PiecePacker::Piece& piece) {
  if (packing_ == Packing::kGzip)
    plain_crc_ = static_cast<uint32_t>(
        crc32_combine(plain_crc_, piece.plain_crc, static_cast<z_off_t>(piece.plain_size)));
  plain_size_ += piece.plain_size;
  return write(piece.bytes);
}

Status PiecewiseFile::commit() {
  if (packing_ == Packing::kGzip) {
    std::string end(kLastBlock);
    put_u32(plain_crc_, &end);
    put_u32(static_cast<uint32_t>(plain_size_), &end);
    FLUX_RETURN_IF_ERROR(write(end));
  }
  if (in_place_) return Status::ok();
  if (::fsync(fd_) != 0) return errno_status("cannot flush " + aside_, errno);
  if (::rename(aside_.c_str(), path_.c_str()) != 0)
    return errno_status("cannot rename " + aside_ + " to " + path_, errno);
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0) return errno_status("cannot close " + path_, errno);
  return sync_folder(parent_folder(path_));
}

Status write_packed_by_name(const std::string& named, std::string_view text) {
  constexpr size_t kPieceBytes = 1 << 20;
  FLUX_ASSIGN_OR_RETURN(const auto file, PiecewiseFile::create(named));
  PiecePacker packer(file->packing());
  for (; !text.empty(); text.remove_prefix(std::min(kPieceBytes, text.size()))) {
    FLUX_ASSIGN_OR_RETURN(const auto piece, packer.pack(text.substr(0, kPieceBytes)));
    FLUX_RETURN_IF_ERROR(file->append(piece));
  }
  return file->commit();
}

}  // namespace flux
