#include "flux/worker/mode.h"

namespace flux {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Mode> (*make)();
};
constexpr Entry kModes[] = {{"async", make_async}, {"half_async", make_async}, {"sync", make_sync}};

}  // namespace

Result<std::unique_ptr<Mode>> make_mode(const std::string& name) {
  std::string known;
  for (const Entry& entry : kModes) {
    if (name == entry.name) return entry.make();
    known += known.empty() ? entry.name : std::string(", ") + entry.name;
  }
  return invalid("mode '{}' is unknown; there are {}", name, known);
}

}  // namespace flux
