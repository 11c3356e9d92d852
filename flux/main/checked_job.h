// A job file as the command line names it, with its whole model checked; what is odd about it is
// said on stderr. `here`: it is trained on this machine, whose memory its dense parameters must
// fit. Failure: kInvalid with file, line and what is allowed.
#pragma once

#include "flux/base/status.h"
#include "flux/job/job.h"
#include "flux/main/commands.h"
#include "flux/main/found_format.h"

namespace flux {

Result<Job> load_checked_job(const JobArguments& arguments, const FormatOf& format_of = {},
                             bool here = true);

}  // namespace flux
