// The data that a `flux data` command looks at: files that a person names, or those of a job, and
// how they are read: as the job says, or as they look. Failure: as the job file, expand_globs() and
// guess_data_options().
#pragma once

#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/main/commands.h"

namespace flux {

struct DataSource {
  std::vector<std::string> files;
  DataOptions options;
  unsigned threads = 1;
};

Result<DataSource> find_source(const DataArguments& arguments);

}  // namespace flux
