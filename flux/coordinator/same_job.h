// check_same_job: whether a checkpoint belongs to this job, before anything of it is loaded.
// Failure: kInvalid that lists every difference and says what to do: `advice`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/checkpoint/store.h"

namespace flux {

// Of whoever would go on training it.
constexpr const char* kTrainAdvice =
    "give the job another folder with --set output=DIR, set them back, or forget the model that is "
    "there with --fresh";
// Of whoever only looks.
constexpr const char* kLookAdvice =
    "use the job file that it was trained with, set them back, or name the folder of another model "
    "with --set output=DIR";

Status check_same_job(const CheckpointStore& store, const Manifest& found,
                      const std::map<std::string, std::string>& model,
                      const std::vector<std::string>& passes, const char* advice);

}  // namespace flux
