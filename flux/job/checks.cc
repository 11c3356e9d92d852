// check_job(): what no single field of a job can say.
#include <algorithm>
#include <map>
#include <set>

#include "flux/base/text.h"
#include "flux/data/options.h"
#include "flux/job/validate.h"
#include "flux/optimizer/settings.h"

namespace flux {
namespace {

const YamlNode* list_of(const YamlNode& map, std::string_view name) {
  const YamlEntry* entry = map.find(name);
  return entry != nullptr && entry->value.is_list() ? &entry->value : nullptr;
}

// Every name at most once; names_of(i) is the name of element i, given or by default.
template <typename NameOf>
void check_unique(const YamlNode& list, const char* what, NameOf name_of, Problems* problems) {
  std::map<std::string, Origin> first;
  for (size_t i = 0; i < list.items.size(); ++i) {
    const YamlNode* given = scalar_of(list.items[i], "name");
    const Origin& origin = given != nullptr ? given->origin : list.items[i].origin;
    const std::string name = name_of(i);
    const auto [found, is_new] = first.emplace(name, origin);
    if (is_new) continue;
    problems->add(
        origin, fmt::format("{} '{}' is declared twice", what, shorten(name)),
        fmt::format("first at {}; give each its own name", problems->place(found->second)));
  }
}

void check_passes(const YamlNode& root, JobDraft* draft, Problems* problems) {
  Job& job = draft->job;
  const YamlEntry* passes = root.find("passes");
  const YamlEntry* data = root.find("data");
  const YamlEntry* train = data != nullptr ? data->value.find("train") : nullptr;
  if (passes != nullptr && train != nullptr) {
    problems->add(train->origin, "both 'data.train' and 'passes' say what to train on",
                  fmt::format("passes at {}; keep one of them", problems->place(passes->origin)));
  } else if (passes == nullptr && train == nullptr) {
    problems->add(data != nullptr ? data->origin : root.origin, "nothing to train on",
                  "give data.train (files) or passes (a list of {name, train})");
  }
  for (size_t i = 0; i < job.passes.size(); ++i) {
    if (job.passes[i].name.empty()) job.passes[i].name = fmt::format("pass-{}", i);
  }
  if (const YamlNode* list = list_of(root, "passes")) {
    check_unique(
        *list, "pass", [&](size_t i) { return job.passes[i].name; }, problems);
  }
  if (job.passes.empty()) job.passes.push_back({"pass-0", draft->train});
}

void check_phases(const YamlNode& root, const Job& job, Problems* problems) {
  std::set<std::string> seen;
  for (size_t i = 0; i < job.phases.size(); ++i) {
    if (seen.insert(job.phases[i]).second) continue;
    const YamlEntry* phases = root.find("phases");
    const Origin& origin =
        phases->value.is_list() ? phases->value.items[i].origin : phases->value.origin;
    problems->add(origin, fmt::format("phase '{}' is listed twice", job.phases[i]),
                  "a phase runs once per epoch; use 'epochs' to train longer");
  }
}

void check_data(const YamlNode& root, const Job& job, Problems* problems) {
  if (!problems->empty()) return;  // of features that cannot be
  const Status status = check_data_options(job.data);
  if (status.is_ok()) return;
  const YamlEntry* data = root.find("data");
  problems->add(data != nullptr ? data->origin : root.origin, status.message(), "");
}

// Attributes named "table" refer to declared tables.
void check_table_uses(const YamlNode& root, const Job& job, Problems* problems) {
  std::vector<std::string> names;
  for (const TableOptions& table : job.tables) names.push_back(table.name);
  std::set<std::string> used;
  const YamlEntry* model = root.find("model");
  const YamlNode* layers = model != nullptr ? list_of(model->value, "layers") : nullptr;
  if (layers == nullptr) return;
  for (const YamlNode& layer : layers->items) {
    const YamlNode* table = scalar_of(layer, "table");
    if (table == nullptr) continue;
    used.insert(table->text);
    if (std::find(names.begin(), names.end(), table->text) != names.end()) continue;
    problems->add(table->origin,
                  fmt::format("table '{}' is not declared{}", shorten(table->text),
                              did_you_mean(table->text, names)),
                  names.empty() ? "declare it under 'tables'"
                                : fmt::format("declared tables: {}", join(names, ", ")));
  }
  const YamlNode* tables = list_of(root, "tables");
  for (size_t i = 0; tables != nullptr && i < tables->items.size(); ++i) {
    if (used.contains(names[i])) continue;
    const YamlNode* given = scalar_of(tables->items[i], "name");
    problems->add(given != nullptr ? given->origin : tables->items[i].origin,
                  fmt::format("table '{}' is not used by any layer", shorten(names[i])),
                  "add a layer {op: embedding, table: ...} that reads it, or remove the table");
  }
}

// Settings that the rule does not use, then what no single setting can say.
void check_optimizer(const YamlNode& owner, std::string_view name, const OptimizerOptions& options,
                     Problems* problems) {
  const YamlEntry* map = owner.find(name);
  if (map == nullptr || !map->value.is_map()) return;
  bool all_used = true;
  for (const YamlEntry& entry : map->value.entries) {
    const OptimizerSetting* setting = find_optimizer_setting(entry.name);
    if (setting == nullptr || uses_setting(options.rule, *setting)) continue;
    all_used = false;
    problems->add(entry.origin,
                  fmt::format("'{}' is not used by the rule {}", entry.name, options.rule),
                  fmt::format("it is a setting of {}; remove it or choose another rule",
                              join(setting->rules(), ", ")));
  }
  if (!all_used || !problems->empty()) return;
  const Status status = check_optimizer_options(options);
  if (!status.is_ok())
    problems->add(map->value.origin, status.message(), "see docs/using/optimizers.md");
}

void check_optimizers(const YamlNode& root, const Job& job, Problems* problems) {
  check_optimizer(root, "dense_optimizer", job.dense_optimizer, problems);
  const YamlNode* tables = list_of(root, "tables");
  for (size_t i = 0; tables != nullptr && i < tables->items.size(); ++i)
    check_optimizer(tables->items[i], "optimizer", job.tables[i].optimizer, problems);
}

void check_lr_schedule_uses(const YamlNode& root, const Job& job, Problems* problems) {
  const YamlEntry* map = root.find("lr_schedule");
  if (map == nullptr || !map->value.is_map() || !problems->empty()) return;
  for (const YamlEntry& entry : map->value.entries) {
    if (lr_schedule_uses(job.lr_schedule.kind, entry.name)) continue;
    problems->add(entry.origin,
                  fmt::format("'{}' is not used by the kind {}", entry.name, job.lr_schedule.kind),
                  "remove it or choose another kind; see docs/using/optimizers.md");
  }
  const Status status = check_lr_schedule(job.lr_schedule);
  if (problems->empty() && !status.is_ok())
    problems->add(map->value.origin, status.message(), "see docs/using/optimizers.md");
}

}  // namespace

void check_job(const YamlNode& root, JobDraft* draft, Problems* problems) {
  Job& job = draft->job;
  check_passes(root, draft, problems);
  check_phases(root, job, problems);
  if (const YamlNode* tables = list_of(root, "tables")) {
    check_unique(
        *tables, "table", [&](size_t i) { return job.tables[i].name; }, problems);
  }
  check_table_uses(root, job, problems);
  check_features(root, job, problems);
  check_data(root, job, problems);
  check_slot_groups(root, &job, problems);
  check_optimizers(root, job, problems);
  check_lr_schedule_uses(root, job, problems);
  if (job.output.empty()) job.output = "out/" + job.name;
  job.data.seed = job.seed;
  for (TableOptions& table : job.tables) table.seed = job.seed;
  if (job.deterministic) {
    job.threads = 1;
    job.pull_ahead = 0;
  }
}

}  // namespace flux
