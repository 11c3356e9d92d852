// check_same_job: whether a checkpoint belongs to this job, before anything of it is loaded.
// Failure: kInvalid that lists every difference and says what to do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/checkpoint/store.h"

namespace flux {

Status check_same_job(const CheckpointStore& store, const Manifest& found,
                      const std::map<std::string, std::string>& model,
                      const std::vector<std::string>& passes);

}  // namespace flux
