// EventFile: figures over a training as TensorBoard reads them (tensorboard --logdir <output>).
//
// The file is a row of TFRecords (length, masked CRC-32C of it, bytes, masked CRC-32C of them); the
// bytes are Event messages of protocol buffers, written by hand: wall time, step, scalars by tag.
// It is only appended to, event by event, so TensorBoard can look on; a crash costs the last one.
// Each run writes a file of its own. Its first event says from which step this run speaks, so that
// what an earlier file says from there on is not shown.
// Threads: one. Failure: Status; nothing else is lost by it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flux/base/status.h"

namespace flux {

struct EventScalars {
  double wall_s = 0;                                   // since 1970
  uint64_t step = 0;                                   // examples
  std::vector<std::pair<std::string, double>> values;  // by tag: "held-out/auc"
};

class EventFile {
 public:
  // Makes `folder` (if absent) and a new file in it.
  static Result<std::unique_ptr<EventFile>> create(const std::string& folder, double wall_s,
                                                   uint64_t first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  Status add(const EventScalars& scalars);
  const std::string& path() const { return path_; }

 private:
  EventFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  Status write(const std::string& event);

  std::string path_;
  std::FILE* file_;
};

// The parts, for tests.
uint32_t crc32c(std::string_view bytes);
std::string event_record(std::string_view event);
std::string scalars_event(const EventScalars& scalars);

}  // namespace flux
