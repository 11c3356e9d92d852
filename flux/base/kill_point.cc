#include "flux/base/kill_point.h"

#include <array>
#include <charconv>
#include <csignal>
#include <utility>

#include <unistd.h>

#include "flux/base/text.h"

namespace flux {
namespace kill_point_detail {

// One slot for each point, so that a thread inside pass() never holds memory that another frees.
struct Armed {
  std::atomic<uint32_t> left{0};  // passes until the end; 0: not this point
};
std::atomic<Armed*> armed{nullptr};

}  // namespace kill_point_detail

namespace {

using kill_point_detail::Armed;
using kill_point_detail::armed;

constexpr std::array kTable = {
    std::pair{KillPoint::kBeforeApply, "before_apply"},
    std::pair{KillPoint::kAfterApply, "after_apply"},
    std::pair{KillPoint::kAfterCommit, "after_commit"},
    std::pair{KillPoint::kBeforeForward, "before_forward"},
    std::pair{KillPoint::kAfterForward, "after_forward"},
    std::pair{KillPoint::kBeforeReply, "before_reply"},
    std::pair{KillPoint::kAfterReply, "after_reply"},
    std::pair{KillPoint::kBeforeConfirm, "before_confirm"},
    std::pair{KillPoint::kBackupBeforeApply, "backup_before_apply"},
    std::pair{KillPoint::kBackupAfterApply, "backup_after_apply"},
    std::pair{KillPoint::kBackupBeforeAck, "backup_before_ack"},
    std::pair{KillPoint::kCopyBegin, "copy_begin"},
    std::pair{KillPoint::kCopyMid, "copy_mid"},
    std::pair{KillPoint::kCopyEnd, "copy_end"},
    std::pair{KillPoint::kInstallBegin, "install_begin"},
    std::pair{KillPoint::kInstallMid, "install_mid"},
    std::pair{KillPoint::kInstallEnd, "install_end"},
    std::pair{KillPoint::kSeal, "seal"},
    std::pair{KillPoint::kPromote, "promote"},
    std::pair{KillPoint::kBeforeSave, "before_save"},
    std::pair{KillPoint::kMidSave, "mid_save"},
    std::pair{KillPoint::kAfterSave, "after_save"},
    std::pair{KillPoint::kOpenPass, "open_pass"},
    std::pair{KillPoint::kCloseBelow, "close_below"},
    std::pair{KillPoint::kMark, "mark"},
    std::pair{KillPoint::kAssign, "assign"},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<size_t>(kTable[i].first) != i) return false;
  return static_cast<size_t>(KillPoint::kAssign) + 1 == kTable.size();
}
static_assert(in_order(), "the table has every point, in the order of the enum");

std::array<Armed, kTable.size()> slots;

}  // namespace

void kill_point_detail::pass(KillPoint point) {
  std::atomic<uint32_t>& left = slots[static_cast<size_t>(point)].left;
  uint32_t now = left.load(std::memory_order_relaxed);
  while (now != 0 && !left.compare_exchange_weak(now, now - 1)) {
  }
  if (now != 1) return;
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();  // the signal may take a moment; nothing may happen after this point
}

const std::vector<std::string>& kill_point_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& entry : kTable) all.emplace_back(entry.second);
    return all;
  }();
  return names;
}

const char* kill_point_name(KillPoint point) {
  return kTable[static_cast<size_t>(point)].second;
}

Result<KillOrder> parse_kill_order(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  KillOrder order;
  bool known = false;
  for (const auto& entry : kTable)
    if (name == entry.second) {
      order.point = entry.first;
      known = true;
    }
  if (!known)
    return invalid("'{}' is no kill point{}; there are: {}", name,
                   did_you_mean(name, kill_point_names()), join(kill_point_names(), ", "));
  if (colon == std::string_view::npos) return order;
  const std::string_view number = text.substr(colon + 1);
  const auto [end, failed] =
      std::from_chars(number.data(), number.data() + number.size(), order.pass);
  if (failed != std::errc() || end != number.data() + number.size() || order.pass == 0)
    return invalid("'{}': after the colon comes the pass to die at, 1 or more", text);
  return order;
}

void arm_kill_point(const KillOrder& order) {
  for (Armed& slot : slots) slot.left = 0;
  slots[static_cast<size_t>(order.point)].left = order.pass;
  armed.store(slots.data());
}

void disarm_kill_points() {
  armed.store(nullptr);
  for (Armed& slot : slots) slot.left = 0;
}

}  // namespace flux
