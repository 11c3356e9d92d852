// The kernel of ops/fc.cc: activations, bias and in-place dz around FcProducts; a layer with one
// unit is a dot product per example and never becomes a GEMM.
#pragma once

#include <memory>

#include "flux/nn/operator.h"

namespace flux {

Result<std::unique_ptr<Kernel>> make_fc_kernel(const KernelArgs& args);

}  // namespace flux
