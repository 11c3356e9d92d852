// What a data file probably is, from its first lines: so that one can look at it without a job.
//
// Block files say it themselves. A line with 39 tabs is taken for criteo_tsv. Lines whose first
// word is a number and whose others are NAME:NUMBER are taken for feasign; names with whole numbers
// only become slots, others dense features. Reads at most the first MiB of text. Failure: kNotFound
// / kIo; kInvalid that says what the first line looks like.
#pragma once

#include <string>

#include "flux/data/dataset.h"

namespace flux {

Result<DataOptions> guess_data_options(const std::string& path);

}  // namespace flux
