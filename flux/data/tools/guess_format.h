// What a data file probably is, from its first lines: so that one can look at it without a job.
//
// Block files say it themselves. A line with 39 tabs is taken for criteo_tsv. Lines whose first
// word is a number and whose others are NAME:NUMBER are taken for feasign; names with whole numbers
// only become slots, others dense features. Lines that are not of the format of most others do not
// count. Keys that look like those of tables (guess_text.h) are taken for such: raw_keys. Reads at
// most the first MiB of text. Failure: kNotFound / kIo; kInvalid that says what the
// first line looks like.
#pragma once

#include <string>

#include "flux/data/dataset.h"

namespace flux {

// *note: what a person has to know of it, in one line; empty: nothing.
Result<DataOptions> guess_data_options(const std::string& path, std::string* note);

}  // namespace flux
