// Attributes that every layer with parameters takes, whatever its operator: how its parameters
// begin, and a factor of their learning rate. An operator that registers an attribute of the same
// name keeps it for itself.
// Pure. Failure: kInvalid that begins with `where`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/nn/graph.h"

namespace flux {

// Those of parameter_attributes() among `attrs` that the operator does not have, taken out of it.
std::map<std::string, AttrValue> take_parameter_attributes(const std::vector<AttrSpec>& own,
                                                           std::map<std::string, AttrValue>* attrs);
// `init` and `init_scale` change the matrices of the layer, or all its parameters if it has no
// matrix; `lr_scale` all. Summaries stay as their operator made them.
Status apply_parameter_attributes(const std::map<std::string, AttrValue>& given,
                                  const std::string& where, std::vector<Parameter>* parameters);

}  // namespace flux
