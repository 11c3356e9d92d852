// For the tests of operators with summaries (nn/graph.h) over dense features: what a batch pushes
// for "count", "sum" and "squares", and what is predicted by them. Pure but for memory; aborts if
// there is no such operator.
#pragma once

#include <string>

namespace flux {

// "" when the summaries take in the count, the sums and the sums of squares of a batch, with
// `epsilon` added to each square; else what differs.
std::string check_summaries(const std::string& op, double epsilon = 0);

// What `op` makes of x in prediction when its summaries have this mean and variance.
float predicted_by_summaries(const std::string& op, float x, float mean, float variance);

}  // namespace flux
