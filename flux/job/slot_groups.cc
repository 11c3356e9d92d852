// check_slot_groups(): which slots have rows in which tables.
#include <algorithm>
#include <map>

#include "flux/base/text.h"
#include "flux/job/validate.h"

namespace flux {
namespace {

constexpr size_t kGroupsMax = 64;

// The place of table i in the file.
struct TablePlace {
  const YamlNode* list = nullptr;
  Origin at(size_t i) const {
    const YamlEntry* slots = list->items[i].find("slots");
    return slots != nullptr ? slots->value.origin : list->items[i].origin;
  }
};

bool check_names(const std::vector<std::string>& known, const Job& job, const TablePlace& place,
                 Problems* problems) {
  for (size_t i = 0; i < job.tables.size(); ++i) {
    std::vector<std::string> seen;
    for (const std::string& slot : job.tables[i].slots) {
      if (std::find(seen.begin(), seen.end(), slot) != seen.end())
        problems->add(place.at(i), fmt::format("slot '{}' is named twice", slot), "name it once");
      seen.push_back(slot);
      if (std::find(known.begin(), known.end(), slot) != known.end()) continue;
      problems->add(place.at(i),
                    fmt::format("the data has no slot '{}'{}", slot, did_you_mean(slot, known)),
                    fmt::format("slots: {}", join(known, ", ")));
    }
  }
  return problems->empty();
}

// Numbers the sets of slots that tables name; equal sets have one number. Sets that overlap
// otherwise are refused.
std::map<std::string, uint32_t> number_sets(Job* job, const TablePlace& place, Problems* problems) {
  std::map<std::string, uint32_t> group_of;  // by slot
  std::vector<std::vector<std::string>> sets;
  for (size_t i = 0; i < job->tables.size(); ++i) {
    TableOptions& table = job->tables[i];
    if (table.slots.empty()) continue;
    std::vector<std::string> set = table.slots;
    std::sort(set.begin(), set.end());
    const auto same = std::find(sets.begin(), sets.end(), set);
    table.group = static_cast<uint32_t>(same - sets.begin()) + 1;
    if (same != sets.end()) continue;
    sets.push_back(set);
    for (const std::string& slot : set) {
      const auto [at, is_new] = group_of.emplace(slot, table.group);
      if (is_new) continue;
      problems->add(place.at(i),
                    fmt::format("slot '{}' is in another table with other slots", slot),
                    "tables name the same slots or different ones; one without 'slots' has all");
    }
  }
  return group_of;
}

// Slots that share their keys share their rows, so they are in the same tables.
void check_shared(const DataOptions& data, const std::map<std::string, uint32_t>& group_of,
                  const Origin& origin, Problems* problems) {
  std::map<std::string, std::string> first;  // slot, by word of keys
  const auto check = [&](const std::string& name, const std::string& keys) {
    if (std::find(data.hidden.begin(), data.hidden.end(), name) != data.hidden.end()) return;
    const auto [at, is_new] = first.emplace(keys.empty() ? name : keys, name);
    const auto group = [&](const std::string& slot) {
      const auto found = group_of.find(slot);
      return found == group_of.end() ? 0U : found->second;
    };
    if (is_new || group(name) == group(at->second)) return;
    problems->add(origin,
                  fmt::format("slots '{}' and '{}' share their keys, but are in different tables",
                              at->second, name),
                  "name both in the same tables, or give them different 'keys'");
  };
  for (const SlotOptions& slot : data.slots) check(slot.name, slot.keys);
  for (const FeatureOptions& feature : data.features) check(feature.name, feature.keys);
}

}  // namespace

void check_slot_groups(const YamlNode& root, Job* job, Problems* problems) {
  const YamlEntry* tables = root.find("tables");
  const bool limited = std::any_of(job->tables.begin(), job->tables.end(),
                                   [](const TableOptions& t) { return !t.slots.empty(); });
  if (!problems->empty() || !limited) return;
  const TablePlace place{&tables->value};
  const std::vector<std::string> known = features_of(job->data).slot_names;
  if (!check_names(known, *job, place, problems)) return;
  const std::map<std::string, uint32_t> group_of = number_sets(job, place, problems);
  uint32_t groups = 0;
  for (const auto& [slot, group] : group_of) groups = std::max(groups, group);
  const bool all_limited = std::none_of(job->tables.begin(), job->tables.end(),
                                        [](const TableOptions& t) { return t.slots.empty(); });
  bool rest = false;
  for (const std::string& slot : known) {
    const auto found = group_of.find(slot);
    if (found == group_of.end() && all_limited) {
      job->data.hidden.push_back(slot);
      continue;
    }
    rest = rest || found == group_of.end();
    job->slot_groups.push_back(
        static_cast<uint8_t>(found == group_of.end() ? groups : found->second - 1));
  }
  job->key_groups = groups + (rest ? 1 : 0);
  check_shared(job->data, group_of, tables->origin, problems);
  if (job->key_groups > kGroupsMax || (job->shards != 0 && job->shards < job->key_groups))
    problems->add(
        tables->origin,
        fmt::format("{} groups of slots, at most {}", job->key_groups,
                    job->shards != 0 ? std::min<size_t>(job->shards, kGroupsMax) : kGroupsMax),
        "each needs a shard; see 'shards'");
  if (job->key_groups == 1) {  // all slots are in the same tables
    job->slot_groups.clear();
    for (TableOptions& table : job->tables) table.group = 0;
  }
}

}  // namespace flux
