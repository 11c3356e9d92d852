#include "flux/main/test_look.h"

#include <algorithm>
#include <string>

#include "flux/data/bad_records.h"
#include "flux/data/dataset.h"
#include "flux/data/tools/first_records.h"

namespace flux {
namespace {

constexpr uint64_t kLooked = 100;  // records of each file

// Counts bad records until they are more than the job allows to be set aside.
class BadCount {
 public:
  explicit BadCount(uint64_t allowed) : allowed_(allowed) {}
  uint64_t allowed() const { return allowed_; }
  Status add(const Status& why) {
    if (why.code() != Code::kInvalid || allowed_ == 0) return why;
    if (++found_ == 1) first_ = why.message();
    return found_ > allowed_ ? too_many_bad_records(first_, found_, allowed_) : Status::ok();
  }

 private:
  const uint64_t allowed_;
  uint64_t found_ = 0;
  std::string first_;
};

// Where bad records may be set aside, up to the first good one, which tells the format.
Status look_at_file(const FirstRecords& data, size_t file, BadCount* bad) {
  uint64_t looked = 0, good = 0;
  const auto sink = [&](const Status& refused, const Batch& batch,
                        const auto& /*names*/) -> Status {
    looked += refused.is_ok() ? batch.size : 1;
    good += refused.is_ok() ? batch.size : 0;
    if (!refused.is_ok()) FLUX_RETURN_IF_ERROR(bad->add(refused));
    return looked < kLooked || good == 0 ? Status::ok() : error(Code::kCancelled, "enough");
  };
  const Status status = data.read(file, std::max(kLooked, bad->allowed() + 1), sink).status();
  return status.code() == Code::kCancelled ? Status::ok() : status;
}

}  // namespace

Status look_at_test(const Job& job) {
  if (job.test.empty()) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(job.test));
  FLUX_ASSIGN_OR_RETURN(const FirstRecords data, FirstRecords::open(files, job.data));
  BadCount bad(job.data.bad_records);
  for (size_t file = 0; file < data.files(); ++file)
    FLUX_RETURN_IF_ERROR(look_at_file(data, file, &bad));
  return Status::ok();
}

}  // namespace flux
