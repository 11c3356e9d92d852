#include "flux/data/tools/data_stats.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flux/base/text.h"

namespace flux {
namespace {

constexpr uint32_t kBarWidth = 20;

// A share of 1 as a bar of eighths of a character.
std::string bar(double share) {
  static const char* const kParts[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths =
      static_cast<uint32_t>(std::lround(std::clamp(share, 0.0, 1.0) * kBarWidth * 8));
  std::string out;
  for (uint32_t i = 0; i < kBarWidth; ++i) {
    const uint32_t left = eighths > i * 8 ? eighths - i * 8 : 0;
    out += left >= 8 ? "█" : kParts[left];
  }
  return out;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

size_t name_width(const std::vector<std::string>& names, size_t least, uint32_t width) {
  size_t most = least;
  for (const std::string& name : names) most = std::max(most, name.size());
  return std::min<size_t>(most, std::max<size_t>(least, width / 3));
}

void table_numbers(const char* title, const std::vector<std::string>& names,
                   const std::vector<NumberStats>& stats, uint64_t examples, uint32_t width,
                   std::string* out) {
  if (names.empty()) return;
  const size_t w = name_width(names, 8, width);
  *out +=
      fmt::format("\n{:<{}}  {:>12} {:>12} {:>12}   not 0\n", title, w, "least", "mean", "most");
  for (size_t i = 0; i < names.size(); ++i) {
    const NumberStats& s = stats[i];
    const auto finite = static_cast<double>(examples - s.not_finite);
    *out += fmt::format("{:<{}.{}}  {:>12.6g} {:>12.6g} {:>12.6g}  {:>5.1f} % {}{}\n", names[i], w,
                        w, s.least, finite > 0 ? s.sum / finite : 0.0, s.most,
                        100 * share(s.not_zero, examples), bar(share(s.not_zero, examples)),
                        s.not_finite > 0 ? fmt::format("  {} not finite", s.not_finite) : "");
  }
}

nlohmann::ordered_json number_json(const std::string& name, const NumberStats& s,
                                   uint64_t examples) {
  const auto finite = static_cast<double>(examples - s.not_finite);
  return {{"name", name},           {"least", s.least},
          {"most", s.most},         {"mean", finite > 0 ? s.sum / finite : 0.0},
          {"not_zero", s.not_zero}, {"not_finite", s.not_finite}};
}

}  // namespace

void NumberStats::add(float value) {
  if (!std::isfinite(value)) {
    ++not_finite;
    return;
  }
  if (value != 0) ++not_zero;
  sum += value;
  least = any ? std::min(least, value) : value;
  most = any ? std::max(most, value) : value;
  any = true;
}

void NumberStats::merge(const NumberStats& other) {
  not_zero += other.not_zero;
  not_finite += other.not_finite;
  sum += other.sum;
  if (!other.any) return;
  least = any ? std::min(least, other.least) : other.least;
  most = any ? std::max(most, other.most) : other.most;
  any = true;
}

DataStats::DataStats(RecordSchema schema)
    : schema_(std::move(schema)),
      slots_(schema_.slots.size()),
      labels_(schema_.labels.size()),
      dense_(schema_.dense.size()) {}

void DataStats::add(const Batch& batch) {
  examples_ += batch.size;
  for (size_t l = 0; l < labels_.size(); ++l)
    for (uint32_t i = 0; i < batch.size; ++i) labels_[l].add(batch.labels[l * batch.size + i]);
  for (uint32_t i = 0; i < batch.size; ++i)
    for (uint32_t d = 0; d < batch.dense; ++d)
      dense_[d].add(batch.dense_values[size_t{i} * batch.dense + d]);
  add_keys(batch);
}

void DataStats::add_keys(const Batch& batch) {
  for (uint32_t i = 0; i < batch.size; ++i)
    for (uint32_t s = 0; s < batch.slots; ++s) {
      const size_t place = size_t{i} * batch.slots + s;
      const uint32_t begin =
          batch.begin.empty() ? static_cast<uint32_t>(place) : batch.begin[place];
      const uint32_t end = batch.begin.empty() ? begin + 1 : batch.begin[place + 1];
      SlotStats& slot = slots_[s];
      slot.examples += end > begin ? 1 : 0;
      slot.keys += end - begin;
      slot.keys_most = std::max(slot.keys_most, end - begin);
      for (uint32_t k = begin; k < end; ++k) slot.different.add(batch.keys[k]);
    }
}

void DataStats::merge(const DataStats& other) {
  examples_ += other.examples_;
  for (size_t l = 0; l < labels_.size(); ++l) labels_[l].merge(other.labels_[l]);
  for (size_t d = 0; d < dense_.size(); ++d) dense_[d].merge(other.dense_[d]);
  for (size_t s = 0; s < slots_.size(); ++s) {
    slots_[s].examples += other.slots_[s].examples;
    slots_[s].keys += other.slots_[s].keys;
    slots_[s].keys_most = std::max(slots_[s].keys_most, other.slots_[s].keys_most);
    slots_[s].different.merge(other.slots_[s].different);
  }
}

std::string DataStats::text(uint32_t width) const {
  std::string out = fmt::format("{} examples\n", with_commas(examples_));
  table_numbers("label", schema_.labels, labels_, examples_, width, &out);
  if (!schema_.slots.empty()) {
    const size_t w = name_width(schema_.slots, 8, width);
    out += fmt::format("\n{:<{}}  {:>14} {:>9} {:>6}   examples that have it\n", "slot", w,
                       "different keys", "keys/ex.", "most");
    for (size_t s = 0; s < slots_.size(); ++s)
      out += fmt::format(
          "{:<{}.{}}  {:>14} {:>9.2f} {:>6}  {:>5.1f} % {}\n", schema_.slots[s], w, w,
          with_commas(static_cast<uint64_t>(std::llround(slots_[s].different.count()))),
          share(slots_[s].keys, examples_), slots_[s].keys_most,
          100 * share(slots_[s].examples, examples_), bar(share(slots_[s].examples, examples_)));
  }
  table_numbers("dense", schema_.dense, dense_, examples_, width, &out);
  return out;
}

std::string DataStats::json() const {
  nlohmann::ordered_json out = {{"examples", examples_}};
  out["labels"] = out["slots"] = out["dense"] = nlohmann::ordered_json::array();
  for (size_t l = 0; l < labels_.size(); ++l)
    out["labels"].push_back(number_json(schema_.labels[l], labels_[l], examples_));
  for (size_t s = 0; s < slots_.size(); ++s)
    out["slots"].push_back({{"name", schema_.slots[s]},
                            {"examples", slots_[s].examples},
                            {"keys", slots_[s].keys},
                            {"keys_most", slots_[s].keys_most},
                            {"different_keys", std::llround(slots_[s].different.count())}});
  for (size_t d = 0; d < dense_.size(); ++d)
    out["dense"].push_back(number_json(schema_.dense[d], dense_[d], examples_));
  return out.dump(2);
}

}  // namespace flux
