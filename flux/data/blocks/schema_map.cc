#include "flux/data/blocks/schema_map.h"

#include <algorithm>

#include "flux/base/text.h"

namespace flux {
namespace {

using Names = std::vector<std::string>;

Result<std::vector<uint32_t>> places(const std::string& path, const char* what, const Names& file,
                                     const Names& job) {
  std::vector<uint32_t> out;
  for (const std::string& name : job) {
    const auto at = std::find(file.begin(), file.end(), name);
    if (at == file.end())
      return invalid("{}: its records have no {} '{}'{}; they have: {}", path, what, name,
                     did_you_mean(name, file), file.empty() ? "none" : join(file, ", "));
    out.push_back(static_cast<uint32_t>(at - file.begin()));
  }
  for (const std::string& name : file)
    if (std::find(job.begin(), job.end(), name) == job.end())
      return invalid("{}: its records have the {} '{}', which the job does not declare{}", path,
                     what, name, did_you_mean(name, job));
  return out;
}

}  // namespace

Result<SchemaMap> map_schema(const std::string& path, const RecordSchema& file,
                             const RecordSchema& job) {
  SchemaMap out;
  FLUX_ASSIGN_OR_RETURN(out.labels, places(path, "label", file.labels, job.labels));
  FLUX_ASSIGN_OR_RETURN(out.dense, places(path, "dense feature", file.dense, job.dense));
  FLUX_ASSIGN_OR_RETURN(out.slots, places(path, "slot", file.slots, job.slots));
  out.same_slots = std::is_sorted(out.slots.begin(), out.slots.end());
  if (file.weights != job.weights)
    return invalid("{}: its records have {}", path,
                   file.weights ? "weights, but the job does not say data.weights: true"
                                : "no weights; take data.weights out of the job");
  if (file.values != job.values)
    return invalid("{}: the keys of its records have {}", path,
                   file.values ? "values, but no slot of the job says values: true"
                               : "no values; take values: true out of the job's slots");
  if (job.groups && !file.groups)
    return invalid("{}: its records have no groups; convert it anew with data.group", path);
  return out;
}

}  // namespace flux
