// The closed set of verbs on the wire, and which role may use each. A number is never used twice
// with another meaning; docs/internals/messages.md describes the messages. Constants and pure
// functions; nothing here fails.
#pragma once

#include <cstdint>

namespace flux {

enum class ApiVerb : uint16_t {
  // At a server, by workers.
  kPull = 1,
  kPush = 2,
  kConfirm = 3,
  // At a server, by servers.
  kReplicate = 8,
  kInstall = 9,
  // At a server, by a coordinator.
  kOpenJob = 16,
  kLoad = 17,
  kOpenPass = 18,
  kCloseBelow = 19,
  kMarked = 20,
  kMark = 21,
  kVoidMember = 22,
  kSave = 23,
  kTotals = 24,
  kCloseJob = 25,
  kAssign = 26,
  kSeal = 27,
  kCopy = 28,
  kHoldings = 29,
  // At a coordinator, by workers.
  kJoin = 32,
  kLease = 33,
  kReport = 34,
  kMap = 35,
  kGeometry = 36,
  kLeave = 37,
  // At a coordinator, by servers.
  kServerJoin = 48,
  kServerReport = 49,
};

// Who calls; the same numbers as PeerRole of rpc/service.h, which this library does not know.
enum class CallerRole : uint8_t { kAdmin = 0, kCoordinator, kServer, kWorker, kViewer };
// Where a verb is served.
enum class VerbHome : uint8_t { kNowhere, kServer, kCoordinator };

struct VerbRule {
  ApiVerb verb;
  const char* name;  // for messages
  VerbHome home;
  CallerRole caller;  // the one role that may use it
};

inline constexpr VerbRule kVerbRules[] = {
    {ApiVerb::kPull, "pull", VerbHome::kServer, CallerRole::kWorker},
    {ApiVerb::kPush, "push", VerbHome::kServer, CallerRole::kWorker},
    {ApiVerb::kConfirm, "confirm", VerbHome::kServer, CallerRole::kWorker},
    {ApiVerb::kReplicate, "replicate", VerbHome::kServer, CallerRole::kServer},
    {ApiVerb::kInstall, "install", VerbHome::kServer, CallerRole::kServer},
    {ApiVerb::kOpenJob, "open_job", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kLoad, "load", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kOpenPass, "open_pass", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kCloseBelow, "close_below", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kMarked, "marked", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kMark, "mark", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kVoidMember, "void_member", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kSave, "save", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kTotals, "totals", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kCloseJob, "close_job", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kAssign, "assign", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kSeal, "seal", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kCopy, "copy", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kHoldings, "holdings", VerbHome::kServer, CallerRole::kCoordinator},
    {ApiVerb::kJoin, "join", VerbHome::kCoordinator, CallerRole::kWorker},
    {ApiVerb::kLease, "lease", VerbHome::kCoordinator, CallerRole::kWorker},
    {ApiVerb::kReport, "report", VerbHome::kCoordinator, CallerRole::kWorker},
    {ApiVerb::kMap, "map", VerbHome::kCoordinator, CallerRole::kWorker},
    {ApiVerb::kGeometry, "geometry", VerbHome::kCoordinator, CallerRole::kWorker},
    {ApiVerb::kLeave, "leave", VerbHome::kCoordinator, CallerRole::kWorker},
    {ApiVerb::kServerJoin, "server_join", VerbHome::kCoordinator, CallerRole::kServer},
    {ApiVerb::kServerReport, "server_report", VerbHome::kCoordinator, CallerRole::kServer},
};

// Whether `role` may use verb number `verb` at `home`; anything not in the table may not.
constexpr bool verb_allowed(VerbHome home, CallerRole role, uint16_t verb) {
  for (const VerbRule& rule : kVerbRules)
    if (static_cast<uint16_t>(rule.verb) == verb) return rule.home == home && rule.caller == role;
  return false;
}
constexpr const char* verb_name(ApiVerb verb) {
  for (const VerbRule& rule : kVerbRules)
    if (rule.verb == verb) return rule.name;
  return "unknown";
}

}  // namespace flux
