// Checks the attributes a person gave to a node against those its operator registered.
// Pure functions. Failure: kInvalid that begins with `where` and lists what is allowed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/nn/graph.h"

namespace flux {

// "job.yaml:12:5: node 'fc1' (fc): "
std::string node_prefix(const std::string& origin, const std::string& name, const std::string& op);
// The attributes with defaults filled in and numbers brought to the registered type.
Result<std::map<std::string, AttrValue>> check_attributes(
    const std::vector<AttrSpec>& specs, const std::map<std::string, AttrValue>& given,
    const std::string& where);
std::string attr_text(const AttrValue& value);

}  // namespace flux
