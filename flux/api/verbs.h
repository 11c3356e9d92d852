// The closed set of verbs on the wire, and which role may use each. A number is never used twice
// with another meaning; docs/internals/rpc.md lists the messages. Constants only.
#pragma once

#include "flux/base/status.h"

namespace flux {

enum class ApiVerb : uint16_t {
  // At a server, by workers.
  kPull = 1,
  kPush = 2,
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

}  // namespace flux
