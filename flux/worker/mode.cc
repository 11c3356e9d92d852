#include "flux/worker/mode.h"

#include <iterator>
#include <utility>

namespace flux {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<WorkerMode> (*make)(const ModeOptions&);
};
constexpr Entry kModes[] = {
    {"async", make_async}, {"half_async", make_half_async}, {"sync", make_sync}};

}  // namespace

Result<std::unique_ptr<WorkerMode>> make_mode(const std::string& name, const ModeOptions& options) {
  std::string known;
  for (const Entry& entry : kModes) {
    if (name == entry.name) return entry.make(options);
    known += known.empty() ? entry.name : std::string(", ") + entry.name;
  }
  return invalid("mode '{}' is unknown; there are {}", name, known);
}

PushWork single_push(const std::shared_ptr<LaneHost>& host, const BatchWorkPtr& work) {
  PushPart part = work->part();
  PushWork push;
  push.ids = {part.id};
  push.geometry = work->item.geometry;
  push.keys = part.keys;
  push.counts = part.counts;
  push.tables = std::move(part.tables);
  push.dense = part.dense;
  push.examples = part.examples;
  push.lr_scale = part.lr_scale;
  push.pulled = work->marks;
  push.bytes = work->gradient_bytes();
  push.step = work->item.step;
  push.memory = work;
  push.applied = [host] { host->wake(); };
  push.released = [host, work] { host->acknowledged(work); };
  return push;
}

}  // namespace flux
