// The text formats with any number of keys in a line: for each, what its options must be and how
// its blocks are read. Rows of the table in format.cc; each is defined in the format's own file.
// Pure functions. Failure: kInvalid that names the option.
#pragma once

#include <memory>

#include "flux/data/block_readers.h"

namespace flux {

using LineFormatMaker = Result<std::unique_ptr<const BlockFormat>>(const DataOptions& options);
using OptionsCheck = Status(const DataOptions& options);

OptionsCheck check_feasign, check_multislot, check_libsvm, check_libffm, check_vw, check_csv;
LineFormatMaker feasign_lines, multislot_lines, libsvm_lines, libffm_lines, vw_lines, csv_lines;

}  // namespace flux
