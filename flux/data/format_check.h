// What the options of a format must be, as far as several formats ask the same. Internal to data/.
// Pure functions. Failure: kInvalid that names the option and what is allowed.
#pragma once

#include "flux/base/status.h"
#include "flux/data/dataset.h"

namespace flux {

// Options that only some formats read.
struct FormatUses {
  bool columns = false;            // data.columns
  bool csv = false;                // data.csv
  bool minus_one_is_zero = false;  // labels of two classes
  bool values = true;              // slots with values: true
  bool dense = true;               // dense features
  bool many_labels = true;         // more than one
  bool weights = true;             // of examples
  bool sessions = true;            // data.group: sid
};

// Of formats whose records hold what the job declares: names, group, slices, and nothing that the
// format does not read.
Status check_declared(const DataOptions& options, const FormatUses& uses);
// Of formats with fixed columns.
Status check_fixed(const DataOptions& options);
// What only sentences have.
Status check_no_words(const DataOptions& options);

}  // namespace flux
