// LabelledCopy: lines without labels, as a model that serves gets them, with a 0 for each label put
// before them, in files of a temporary folder; so they are read as any lines are.
//
// Files may be packed, or come out of the job's pipe; the copy is plain text.
// Threads: one. Ownership: the files go with the object.
// Failure: kInvalid for formats whose labels do not stand at the begin of lines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/main/trial.h"

namespace flux {

class LabelledCopy {
 public:
  static Result<LabelledCopy> make(std::vector<std::string> files, const DataOptions& options);
  const std::vector<std::string>& files() const { return copies_; }
  // A message about the copies in terms of the files that a person knows, columns too; or that
  // lines have labels already, if that is what is wrong.
  Status in_own_files(const Status& status) const;

 private:
  std::unique_ptr<TemporaryFolder> folder_;
  std::vector<std::string> own_, copies_;
  DataOptions options_;  // that read the own files
  size_t added_ = 0;     // bytes before each line
};

}  // namespace flux
