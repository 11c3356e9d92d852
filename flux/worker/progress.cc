#include "flux/worker/progress.h"

namespace flux {

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::kFeed:
      return "feed";
    case Stage::kRead:
      return "read";
    case Stage::kPlan:
      return "plan";
    case Stage::kPull:
      return "pull";
    case Stage::kCompute:
      return "compute";
    case Stage::kPush:
      return "push";
  }
  return "unknown";
}

}  // namespace flux
