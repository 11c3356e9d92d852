// Reading a YAML tree into a JobDraft by the schema, and the checks that span several fields.
// Pure. Failure: problems at the nodes; what could be read is filled in all the same.
#pragma once

#include "flux/job/problems.h"
#include "flux/job/schema.h"
#include "flux/job/yaml_document.h"

namespace flux {

// The object that a section describes, and the whole job that it is a part of.
struct SectionObject {
  void* object;
  JobDraft* draft;
};
// Reads a map by a section of the schema into the section's object.
void read_section(const YamlNode& map, const Section& section, const SectionObject& into,
                  Problems* problems);

// What no single field can say: train or passes, names used twice, tables that nothing uses.
// Fills in the defaults that depend on other fields. Only after read_section().
void check_job(const YamlNode& root, JobDraft* draft, Problems* problems);

// What losses need of labels (DataOptions::label_rules). Of a job without problems.
void find_label_rules(Job* job);

// data.features: what no single field can say.
void check_features(const YamlNode& root, const Job& job, Problems* problems);
// Which slots are in which tables: fills in the groups, and hides the slots that are in none.
void check_slot_groups(const YamlNode& root, Job* job, Problems* problems);

// Settings of `stop` that need others, and names that the job must have. Fills in the phase of a
// named head.
void check_stop(const YamlNode& root, Job* job, Problems* problems);

// "unknown field 'x', did you mean 'y'?" at the entry.
void add_unknown_field(const YamlEntry& entry, const std::vector<std::string>& names,
                       const std::vector<std::pair<std::string, std::string>>& also,
                       Problems* problems);
// The text of a scalar field of a map, or nullptr.
const YamlNode* scalar_of(const YamlNode& map, std::string_view name);

}  // namespace flux
