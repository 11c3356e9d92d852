#include "flux/data/feature_check.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "flux/base/text.h"
#include "flux/data/criteo.h"

namespace flux {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> numbered(const char* letter, uint32_t n) {
  std::vector<std::string> out;
  for (uint32_t i = 1; i <= n; ++i) out.push_back(fmt::format("{}{}", letter, i));
  return out;
}

// Names of keys and of numbers, raw and computed.
struct Known {
  std::vector<std::string> keys, numbers;
};

Known known_names(const DataOptions& options) {
  Known known{raw_slots(options), raw_numbers(options)};
  for (const FeatureOptions& feature : options.features)
    if (const FeatureDef* def = find_feature(feature.op))
      (def->makes_numbers ? known.numbers : known.keys).push_back(feature.name);
  return known;
}

class Checker {
 public:
  explicit Checker(const DataOptions& options) : options_(options), known_(known_names(options)) {}

  std::vector<FeatureMistake> run() {
    for (size_t i = 0; i < options_.features.size(); ++i) check(i);
    if (mistakes_.empty()) check_cycles();
    return std::move(mistakes_);
  }

 private:
  void add(size_t feature, const char* field, std::string what) {
    mistakes_.push_back({feature, field, std::move(what)});
  }

  void check(size_t i) {
    const FeatureOptions& feature = options_.features[i];
    check_name(i);
    const FeatureDef* def = find_feature(feature.op);
    if (def == nullptr)
      return add(
          i, "op",
          fmt::format("op '{}' is not known{}; allowed: {}", feature.op,
                      did_you_mean(feature.op, feature_names()), join(feature_names(), ", ")));
    if (feature.of.size() < def->sources_min || feature.of.size() > def->sources_max)
      add(i, "of",
          def->sources_min == def->sources_max
              ? fmt::format("{} is of {} feature, not of {}", def->name, def->sources_min,
                            feature.of.size())
              : fmt::format("{} is of {} to {} features, not of {}", def->name, def->sources_min,
                            def->sources_max, feature.of.size()));
    for (const std::string& source : feature.of) check_source(i, *def, source);
    if (const auto problem = def->problem(feature)) add(i, problem->field.c_str(), problem->what);
  }

  void check_name(size_t i) {
    const std::string& name = options_.features[i].name;
    size_t times = 0;
    for (const std::string& known : known_.keys) times += known == name ? 1 : 0;
    for (const std::string& known : known_.numbers) times += known == name ? 1 : 0;
    if (times > 1)
      add(i, "name", "the name is taken by a slot, a dense feature or another feature");
    if (has(options_.labels, name)) add(i, "name", "the name is taken by a label");
    for (const char* taken : {"dense", "weight"})
      if (name == taken) add(i, "name", "the name is reserved");
  }

  void check_source(size_t i, const FeatureDef& def, const std::string& source) {
    const std::vector<std::string>& wanted = def.reads_numbers ? known_.numbers : known_.keys;
    const std::vector<std::string>& others = def.reads_numbers ? known_.keys : known_.numbers;
    if (has(wanted, source)) return;
    if (has(others, source))
      return add(i, "of",
                 def.reads_numbers
                     ? fmt::format("'{}' has keys; {} is of a number", source, def.name)
                     : fmt::format("'{}' is a number; {} is of keys (bucketize makes one of a "
                                   "number)",
                                   source, def.name));
    add(i, "of",
        fmt::format("there is no {} '{}'{}; there {}: {}",
                    def.reads_numbers ? "dense feature" : "slot", source,
                    did_you_mean(source, wanted), wanted.size() == 1 ? "is" : "are",
                    wanted.empty() ? "none" : join(wanted, ", ")));
  }

  void check_cycles() {
    std::vector<size_t> order = feature_order(options_);
    if (order.size() == options_.features.size()) return;
    for (size_t i = 0; i < options_.features.size(); ++i) {
      if (std::find(order.begin(), order.end(), i) != order.end()) continue;
      return add(i, "of", fmt::format("it is computed from itself: {}", cycle_from(i, order)));
    }
  }

  // Follows sources that have no place in the order until one comes again.
  std::string cycle_from(size_t start, const std::vector<size_t>& order) const {
    std::vector<std::string> path = {options_.features[start].name};
    for (;;) {
      const FeatureOptions& feature = *find(path.back());
      for (const std::string& source : feature.of) {
        const FeatureOptions* next = find(source);
        if (next == nullptr) continue;
        const auto index = static_cast<size_t>(next - options_.features.data());
        if (std::find(order.begin(), order.end(), index) != order.end()) continue;
        const auto seen = std::find(path.begin(), path.end(), source);
        if (seen != path.end()) {
          path.erase(path.begin(), seen);
          path.push_back(source);
          return join(path, " of ");
        }
        path.push_back(source);
        break;
      }
    }
  }
  const FeatureOptions* find(const std::string& name) const {
    for (const FeatureOptions& feature : options_.features)
      if (feature.name == name) return &feature;
    return nullptr;
  }

  const DataOptions& options_;
  Known known_;
  std::vector<FeatureMistake> mistakes_;
};

}  // namespace

std::vector<std::string> raw_slots(const DataOptions& options) {
  if (options.format == "criteo_tsv") return numbered("C", kCriteoSlots);
  if (options.format == "sentences") return {"words", "negatives"};
  std::vector<std::string> out;
  for (const SlotOptions& slot : options.slots) out.push_back(slot.name);
  return out;
}

std::vector<std::string> raw_numbers(const DataOptions& options) {
  return options.format == "criteo_tsv" ? numbered("I", kCriteoDense) : options.dense;
}

std::vector<FeatureMistake> feature_mistakes(const DataOptions& options) {
  return Checker(options).run();
}

namespace {

std::string setting_text(const FeatureOptions& f, const std::string& setting) {
  if (setting == "keys") return f.keys;
  if (setting == "modulus") return fmt::format("{}", f.modulus);
  if (setting == "boundaries") return fmt::format("{}", f.boundaries);
  if (setting == "quantiles") return fmt::format("{}", f.quantiles);
  if (setting == "log_base") return fmt::format("{}", f.log_base);
  if (setting == "buckets") return fmt::format("{}", f.buckets);
  if (setting == "limit") return fmt::format("{}", f.limit);
  if (setting == "min") return fmt::format("{}", f.min);
  if (setting == "max") return fmt::format("{}", f.max);
  return fmt::format("{}", setting == "mean" ? f.mean : f.deviation);
}

}  // namespace

std::map<std::string, std::string> describe_features(const DataOptions& options) {
  std::map<std::string, std::string> out;
  for (const SlotOptions& slot : options.slots) {
    if (!slot.text && !slot.values) continue;
    out["slots." + slot.name] =
        fmt::format("{}{}{}", slot.text ? "text" : "", slot.text && slot.values ? ", " : "",
                    slot.values ? "values" : "");
  }
  for (const FeatureOptions& feature : options.features) {
    std::string text = fmt::format("{} of {}", feature.op, join(feature.of, ", "));
    for (const std::string& setting : find_feature(feature.op)->settings)
      text += fmt::format(", {} {}", setting, setting_text(feature, setting));
    out["features." + feature.name] = text;
  }
  return out;
}

std::vector<size_t> feature_order(const DataOptions& options) {
  std::vector<size_t> order;
  std::vector<std::string> waiting;
  for (const FeatureOptions& feature : options.features) waiting.push_back(feature.name);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < options.features.size(); ++i) {
      const FeatureOptions& feature = options.features[i];
      if (!has(waiting, feature.name)) continue;
      if (std::any_of(feature.of.begin(), feature.of.end(),
                      [&](const std::string& source) { return has(waiting, source); }))
        continue;
      waiting.erase(std::find(waiting.begin(), waiting.end(), feature.name));
      order.push_back(i);
      moved = true;
    }
  }
  return order;
}

}  // namespace flux
