// The look at a batch that was only predicted: is its loss a number, and if not, whose fault is it?
//
// One wild record must not be blamed on the model. So a bad batch is predicted again, record by
// record, and the text names file and place of the batch and of the record; that the model diverged
// is said only where every record is bad. A good batch costs nothing. Runs on the thread of the
// net, whose last predictions it overwrites. Failure: kInvalid.
#pragma once

#include <vector>

#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/nn/net.h"
#include "flux/protocol/batch_id.h"

namespace flux {

// Example e of an input alone, as an input; its labels are put into `labels`.
NetInput example_of(const NetInput& input, const ModelInputs& model, uint32_t e,
                    std::vector<float>* labels);

// `loss`: the sum that the net gave for `input`. "the loss at a.tsv:200..310 (records 21 to 30) is
// inf because of the record at a.tsv:200..211 (record 21): ..."
Status check_evaluated(double loss, const NetInput& input, Net* net, const BlockReader& reader,
                       const BatchId& id);

}  // namespace flux
