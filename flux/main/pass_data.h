// The data of a pass as jobs cut it: with its bad records set aside, if the job allows any.
// Threads: any. Failure: as Dataset::scan and set_aside_bad_records.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "flux/data/dataset.h"
#include "flux/job/job.h"

namespace flux {

// Without bad records, which nobody is told of.
Result<Geometry> scan_good(std::span<const std::string> files, const DataOptions& options,
                           unsigned threads, const std::atomic<bool>* stop);

// Data that a model is evaluated on. Bad records are told on standard error, the first ten.
Result<Geometry> scan_evaluated(std::span<const std::string> files, const DataOptions& options,
                                unsigned threads, const std::atomic<bool>* stop);
// On standard error, the first ten: "flux: set aside: a.tsv:21:8: what is wrong".
void tell_set_aside(std::span<const std::string> why);

// The test data of a job, in the order of the files. Bad records are written to
// OUTPUT/bad_records/test.tsv, which is of the newest evaluation.
Result<Geometry> cut_test(const Job& job, unsigned threads, const std::atomic<bool>* stop);

// Pass `pass` of a job, whose first block has to be readable. Bad records are written to
// OUTPUT/bad_records/pass-NUMBER.tsv, which is of the newest cut of that pass. With
// data.global_shuffle the cut is of OUTPUT/shuffled/pass-NUMBER.blocks, and that of `files` is kept
// beside it, as sources.json.
Result<Geometry> cut_pass(const Job& job, uint32_t pass, std::span<const std::string> files,
                          unsigned threads, const std::atomic<bool>* stop);

// Whether an open pass, as it was cut, can go on under this job: a note for its user or nothing, or
// kInvalid with what differs. Shuffled records that are lost or damaged are made again, if that
// gives the same.
Result<std::string> check_frozen(const Job& job, uint32_t pass, const Geometry& frozen,
                                 unsigned threads);

}  // namespace flux
