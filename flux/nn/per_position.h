// Runs a kernel of one input over each position of a sequence: [B,T,d] is given to it as B * T
// examples of d numbers. Rows that lie without gaps are used in place, others are copied.
#pragma once

#include <memory>

#include "flux/nn/operator.h"

namespace flux {

using KernelMaker = Result<std::unique_ptr<Kernel>> (*)(const KernelArgs& args);

// `make` gets the same node with tensors of the positions; the node's length is T.
Result<std::unique_ptr<Kernel>> make_per_position(const KernelArgs& args, KernelMaker make);

}  // namespace flux
