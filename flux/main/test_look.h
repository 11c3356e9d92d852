// A look at the test data of a job before it is trained: data that is needed only behind the last
// pass must not turn out then to be of another format.
//
// The first records of every file are parsed. What this refuses, the test would refuse too;
// mistakes further behind it does not see. Threads: the calling one.
// Failure: kNotFound, kIo, kCorrupt or kInvalid with the file and, of a record, its line.
#pragma once

#include "flux/base/status.h"
#include "flux/job/job.h"

namespace flux {

Status look_at_test(const Job& job);

}  // namespace flux
