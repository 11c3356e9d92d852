#include "flux/main/kill_orders.h"

#include <algorithm>

#include <fmt/format.h>

namespace flux {
namespace {

std::string text_of(const KillOrder& order) {
  return fmt::format("{}:{}", kill_point_name(order.point), order.pass);
}

}  // namespace

void KillOrders::look(const std::vector<Faults::Start>& starts) {
  std::map<Key, size_t> lines;
  for (const Faults::Start& start : starts) ++lines[{start.name, text_of(start.order)}];
  std::erase_if(carried_, [&](const auto& one) { return !lines.contains(one.first); });
  for (auto& [key, times] : carried_) times = std::min(times, lines[key]);
}

std::string KillOrders::take(const std::string& name, const std::vector<Faults::Start>& starts) {
  look(starts);
  std::map<Key, size_t> seen;
  for (const Faults::Start& start : starts) {
    if (start.name != name) continue;
    const Key key{name, text_of(start.order)};
    if (++seen[key] <= carried_[key]) continue;
    ++carried_[key];
    return key.second;
  }
  return "";
}

}  // namespace flux
