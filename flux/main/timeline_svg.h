// timeline_svg: a drill as a picture: throughput over time, a mark for each fault, grey where the
// coordinator was away, and goodput beside the undisturbed speed.
//
// Self-contained, without scripts; colours are for a white ground and differ in lightness too. Its
// size is bounded however long the drill was. Pure; no failure.
#pragma once

#include <string>
#include <vector>

#include "flux/main/drill_watch.h"

namespace flux {

struct Timeline {
  std::string title;
  std::string note;      // a line under the title: the accounting line
  double reference = 0;  // examples per second undisturbed; 0: not known
  double goodput = 0;    // share of it that was reached; 0: not known
};

std::string timeline_svg(const Timeline& timeline, const std::vector<DrillSample>& samples,
                         const std::vector<DrillFault>& faults);

}  // namespace flux
