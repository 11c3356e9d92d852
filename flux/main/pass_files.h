// The files that a pass was cut from, held against those that the job names for it now.
//
// Why: passes are known by name, "pass-0" unless they are given one. A list whose first day was
// taken out would name other data for a pass that is closed, and that data would never be read.
// Nothing is read but the cuts in OUTPUT/geometry; the files of closed passes may be gone.
// Threads: any. Failure: kInvalid names the pass, the file, what the job says and what to do.
#pragma once

#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/data/geometry.h"
#include "flux/job/job.h"

namespace flux {

// The shuffled records of a pass, and the cut of the files that they were taken from.
std::string shuffled_path(const Job& job, uint32_t pass);
std::string shuffled_sources_path(const Job& job, uint32_t pass);
// Whether a cut is of the shuffled records of a pass, wherever the output folder was then.
bool is_shuffled(const Geometry& cut);
// A cut that was written to a file; kNotFound if there is none.
Result<Geometry> read_cut(const std::string& path);

// Whether one of the job's names or globs means this place, however it is written.
bool names_place(const std::vector<std::string>& patterns, const std::string& path);

// Whether the job still names, for every pass that is closed, all files that it was closed with. A
// file may have moved: one of the same name and size in another folder is taken for it, as is a
// name in another folder where nothing lies any more. It may have been packed or unpacked where it
// lies (.gz, .zst). Further files are no matter. What cannot be
// known any more, since the cut is lost, is not held against the job.
Status check_closed_passes(const Job& job, const std::vector<ClosedPass>& closed);

}  // namespace flux
