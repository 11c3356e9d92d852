// check_job(): what no single field of a job can say.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "flux/base/text.h"
#include "flux/data/options.h"
#include "flux/job/format_auto.h"
#include "flux/job/validate.h"
#include "flux/optimizer/settings.h"

namespace flux {
namespace {

constexpr size_t kPhasesMax = 16;

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

void check_phases(const YamlNode& root, Job* job, Problems* problems) {
  const YamlEntry* phases = root.find("phases");
  const YamlEntry* model = root.find("model");
  if (phases != nullptr && model != nullptr) {
    problems->add(model->origin, "both 'model' and 'phases' say what is trained",
                  fmt::format("phases at {}; keep one of them", problems->place(phases->origin)));
  } else if (phases == nullptr && model == nullptr) {
    problems->add(root.origin, "field 'model' is missing",
                  "give model (a network) or phases (several, one after the other)");
  }
  const YamlNode* list = list_of(root, "phases");
  if (list == nullptr) return;
  if (job->phases.size() > kPhasesMax)
    problems->add(list->items[kPhasesMax].origin,
                  fmt::format("{} phases, at most {}", job->phases.size(), kPhasesMax),
                  "join networks into one with several losses");
  check_unique(
      *list, "phase", [&](size_t i) { return job->phases[i].name; }, problems);
  for (size_t i = 0; i < job->phases.size(); ++i)
    if (list->items[i].find("dense_optimizer") == nullptr)
      job->phases[i].dense_optimizer = job->dense_optimizer;
}

// The lists of layers of the file.
std::vector<const YamlNode*> layer_lists(const YamlNode& root) {
  std::vector<const YamlNode*> lists;
  const auto add = [&](const YamlNode& map) {
    if (const YamlNode* layers = list_of(map, "layers")) lists.push_back(layers);
  };
  if (const YamlEntry* model = root.find("model")) add(model->value);
  if (const YamlNode* phases = list_of(root, "phases"))
    for (const YamlNode& phase : phases->items) add(phase);
  return lists;
}

// A job that says what lines hold, but not how they are written.
void leave_format_open(const YamlNode& root, Job* job) {
  const YamlEntry* data = root.find("data");
  const bool named = data != nullptr && data->value.find("format") != nullptr;
  if (!named && !(job->data.slots.empty() && job->data.dense.empty()))
    job->data.format = kFormatAuto;
}

bool names_word(std::string_view text, std::string_view word) {
  const auto part = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

// Fields that a --set wrote, the innermost first.
void add_overridden(const YamlNode& map, std::vector<const YamlEntry*>* out) {
  for (const YamlEntry& entry : map.entries) {
    add_overridden(entry.value, out);
    if (entry.value.origin.override_index >= 0) out->push_back(&entry);
  }
}

// The last place where a name is declared or used: an item of a list, or the `name` of one.
const Origin* named_at(const YamlNode& section, std::string_view name) {
  const Origin* found = nullptr;
  for (const char* field : {"slots", "dense", "labels", "slices"}) {
    const YamlEntry* entry = section.find(field);
    if (entry == nullptr) continue;
    const YamlNode& list = entry->value;
    if (list.is_scalar() && list.text == name) found = &list.origin;
    for (const YamlNode& item : list.items) {
      const YamlNode* text = item.is_scalar() ? &item : scalar_of(item, "name");
      if (text != nullptr && text->text == name) found = &text->origin;
    }
  }
  return found;
}

// Where the data section is wrong: at the --set of a field that the message names, at the first
// name that it quotes, else at its begin.
Origin data_origin(const YamlNode& root, const std::string& message) {
  const YamlEntry* data = root.find("data");
  if (data == nullptr) return root.origin;
  std::vector<const YamlEntry*> set;
  add_overridden(data->value, &set);
  for (const YamlEntry* entry : set)
    if (names_word(message, entry->name)) return entry->value.origin;
  const std::vector<std::string> quoted = split(message, '\'');
  const YamlEntry* section = message.starts_with("metrics.") ? root.find("metrics") : data;
  if (section == nullptr || quoted.size() < 3) return data->origin;
  const Origin* named = named_at(section->value, quoted[1]);
  return named != nullptr ? *named : data->origin;
}

void check_data(const YamlNode& root, const Job& job, Problems* problems) {
  if (!problems->empty()) return;              // of features that cannot be
  if (job.data.format == kFormatAuto) return;  // not known yet
  const Status status = check_data_options(job.data);
  if (status.is_ok()) return;
  problems->add(data_origin(root, status.message()), status.message(), "");
}

// Attributes named "table" refer to declared tables.
void check_table_uses(const YamlNode& root, const Job& job, Problems* problems) {
  std::vector<std::string> names;
  for (const TableOptions& table : job.tables) names.push_back(table.name);
  std::set<std::string> used;  // or meant
  const std::vector<const YamlNode*> lists = layer_lists(root);
  if (lists.empty()) return;
  const auto use = [&](const YamlNode& layer) {
    const YamlNode* table = scalar_of(layer, "table");
    if (table == nullptr) return;
    used.insert(table->text);
    if (std::find(names.begin(), names.end(), table->text) != names.end()) return;
    used.insert(nearest_name(table->text, names));
    problems->add(table->origin,
                  fmt::format("table '{}' is not declared{}", shorten(table->text),
                              did_you_mean(table->text, names)),
                  names.empty() ? "declare it under 'tables'"
                                : fmt::format("declared tables: {}", join(names, ", ")));
  };
  for (const YamlNode* layers : lists)
    for (const YamlNode& layer : layers->items) use(layer);
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
  const YamlNode* phases = list_of(root, "phases");
  for (size_t i = 0; phases != nullptr && i < phases->items.size(); ++i)
    check_optimizer(phases->items[i], "dense_optimizer", job.phases[i].dense_optimizer, problems);
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
  check_phases(root, &job, problems);
  check_passes(root, draft, problems);
  if (const YamlNode* tables = list_of(root, "tables")) {
    check_unique(
        *tables, "table", [&](size_t i) { return job.tables[i].name; }, problems);
  }
  check_table_uses(root, job, problems);
  leave_format_open(root, &job);
  check_features(root, job, problems);
  check_data(root, job, problems);
  check_slot_groups(root, &job, problems);
  check_optimizers(root, job, problems);
  check_lr_schedule_uses(root, job, problems);
  check_stop(root, &job, problems);
  if (job.output.empty()) job.output = "out/" + job.name;
  job.data.seed = job.seed;
  for (TableOptions& table : job.tables) table.seed = job.seed;
  if (job.deterministic) job.pull_ahead = 0;
}

}  // namespace flux
