// Overrides: `--set a.b=v` put over the YAML tree before it is checked, so that they are checked
// exactly like the file. Pure. Failure: problems that name the override.
#pragma once

#include <span>
#include <string>

#include "flux/job/job.h"
#include "flux/job/problems.h"
#include "flux/job/yaml_document.h"

namespace flux {

// "--set a.b=v"
std::string override_label(const Override& override);

// Steps of a path are names of fields; an element of a list is named by its number from 0 or by its
// `name`. Maps that do not exist yet are made. Later overrides win.
void apply_overrides(std::span<const Override> overrides, YamlNode* root, Problems* problems);

}  // namespace flux
