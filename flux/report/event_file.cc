#include "flux/report/event_file.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "flux/base/bytes.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, bits reversed

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}

// So that a record that holds records is not mistaken for one.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

// Protocol buffers: a field is its number and kind, then its value.
enum Kind : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(ByteWriter* out, uint64_t value) {
  for (; value >= 128; value >>= 7) out->put<uint8_t>(static_cast<uint8_t>(value | 128));
  out->put<uint8_t>(static_cast<uint8_t>(value));
}
void put_tag(ByteWriter* out, uint64_t field, Kind kind) {
  put_varint(out, field << 3 | kind);
}
void put_bytes(ByteWriter* out, uint64_t field, std::string_view bytes) {
  put_tag(out, field, kBytes);
  put_varint(out, bytes.size());
  out->bytes(bytes.data(), bytes.size());
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7.
void put_moment(ByteWriter* out, double wall_s, uint64_t step) {
  put_tag(out, 1, kFixed64);
  out->put<double>(wall_s);
  put_tag(out, 2, kVarint);
  put_varint(out, step);
}

std::string version_event(double wall_s) {
  ByteWriter event;
  put_moment(&event, wall_s, 0);
  put_bytes(&event, 3, "brain.Event:2");
  return event.take();
}

std::string start_event(double wall_s, uint64_t step) {
  ByteWriter log, event;
  put_tag(&log, 1, kVarint);  // SessionLog: status = 1; START = 1
  put_varint(&log, 1);
  put_moment(&event, wall_s, step);
  put_bytes(&event, 7, log.str());
  return event.take();
}

Result<std::FILE*> new_file(const std::string& folder, double wall_s, std::string* path) {
  for (int n = 0; n < 1000; ++n) {  // runs that began in the same second
    *path = join_path(
        folder, fmt::format("events.out.tfevents.{:010}.flux.{}", static_cast<int64_t>(wall_s), n));
    const int fd = ::open(path->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) return ::fdopen(fd, "wb");
    if (errno != EEXIST) return errno_status("cannot create " + *path, errno);
  }
  return error(Code::kIo, "cannot create {}: too many of this second", *path);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 255] ^ (crc >> 8);
  return ~crc;
}

std::string event_record(std::string_view event) {
  ByteWriter length, out;
  length.put<uint64_t>(event.size());
  out.bytes(length.str().data(), length.size());
  out.put<uint32_t>(masked_crc(length.str()));
  out.bytes(event.data(), event.size());
  out.put<uint32_t>(masked_crc(event));
  return out.take();
}

std::string scalars_event(const EventScalars& scalars) {
  ByteWriter summary, event;
  for (const auto& [tag, value] : scalars.values) {  // Summary.Value: tag = 1, simple_value = 2
    ByteWriter one;
    put_bytes(&one, 1, tag);
    put_tag(&one, 2, kFixed32);
    one.put<float>(static_cast<float>(value));
    put_bytes(&summary, 1, one.str());
  }
  put_moment(&event, scalars.wall_s, scalars.step);
  put_bytes(&event, 5, summary.str());
  return event.take();
}

Result<std::unique_ptr<EventFile>> EventFile::create(const std::string& folder, double wall_s,
                                                     uint64_t first_step) {
  FLUX_RETURN_IF_ERROR(make_folders(folder));
  std::string path;
  FLUX_ASSIGN_OR_RETURN(std::FILE* const opened, new_file(folder, wall_s, &path));
  std::unique_ptr<EventFile> file(new EventFile(path, opened));
  FLUX_RETURN_IF_ERROR(file->write(version_event(wall_s)));
  FLUX_RETURN_IF_ERROR(file->write(start_event(wall_s, first_step)));
  return file;
}

EventFile::~EventFile() {
  std::fclose(file_);
}

Status EventFile::add(const EventScalars& scalars) {
  return write(scalars_event(scalars));
}

Status EventFile::write(const std::string& event) {
  const std::string record = event_record(event);
  if (std::fwrite(record.data(), 1, record.size(), file_) != record.size() ||
      std::fflush(file_) != 0)
    return errno_status("cannot write " + path_, errno);
  return Status::ok();
}

}  // namespace flux
