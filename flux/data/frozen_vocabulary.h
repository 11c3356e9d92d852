// The vocabulary of format `sentences` as a part of a cut: a file without records behind those that
// are trained on. What is drawn for a line depends on it, so a pass
// that was begun with one is not gone on with under another.
// Threads: any. Failure: kNotFound, kIo, and kInvalid for a file that is no vocabulary.
#pragma once

#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/data/geometry.h"

namespace flux {

// Reads it, where the options name one: a bad one is to be named before the data is cut.
Status check_vocabulary(const DataOptions& options);
// Puts it behind the files of a cut, where the options name one.
Status freeze_vocabulary(const DataOptions& options, Geometry* geometry);
// Whether file `file` of a cut is it.
bool is_frozen_vocabulary(const DataOptions& options, const Geometry& geometry, size_t file);
// `frozen`, if the file that the options name now holds the same bytes; else that file.
Result<DataFile> vocabulary_now(const DataOptions& options, const DataFile& frozen);

}  // namespace flux
