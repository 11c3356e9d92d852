#include "flux/protocol/batch_id.h"

#include <fmt/core.h>

namespace flux {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kApplied:
      return "applied";
    case Verdict::kSkipped:
      return "skipped";
    case Verdict::kDropped:
      return "dropped";
    case Verdict::kLost:
      return "lost";
  }
  return "unknown";
}

std::string to_string(const BlockId& id) {
  return fmt::format("pass {} phase {} epoch {} block {}", id.pass, id.phase, id.epoch, id.block);
}

std::string to_string(const BatchId& id) {
  return fmt::format("{} batch {}", to_string(id.block), id.batch);
}

}  // namespace flux
