// The layers of a job's model: `name`, `op` and `inputs`, plus the attributes that the operator
// registered and those of its parameters (nn/graph.h). Pure. Failure: problems at the nodes.
#pragma once

#include <vector>

#include "flux/job/problems.h"
#include "flux/job/value.h"
#include "flux/job/yaml_document.h"
#include "flux/nn/graph.h"

namespace flux {

// What an attribute of an operator may be, in the terms of job files.
ValueSpec attribute_spec(const AttrSpec& attribute);
// Attributes that a layer takes for its parameters, besides those of its operator.
std::vector<const AttrSpec*> shared_attributes(const OperatorInfo& info);
// What `name`, `op` and `inputs` may be.
const ValueSpec& layer_name_spec();
const ValueSpec& layer_op_spec();
const ValueSpec& layer_inputs_spec();

// Appends one NodeSpec per layer that could be read, with every default attribute filled in and
// its origin. `sources`: what the data offers to the model.
void read_layers(const YamlNode& list, const std::vector<std::string>& sources,
                 std::vector<NodeSpec>* layers, Problems* problems);

}  // namespace flux
