// The answer of a service that is one message of api/wire_message.h: in the control part, or in the
// payload if it is long. The counterpart of client/retry_caller.h; pure, no failure.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "flux/api/verbs.h"
#include "flux/api/wire_message.h"
#include "flux/rpc/service.h"

namespace flux {

inline RpcAnswer message_answer(std::string message) {
  RpcAnswer answer;
  if (message.size() <= kControlBytesMax) {
    answer.control = std::move(message);
    return answer;
  }
  const auto kept = std::make_shared<const std::string>(std::move(message));
  answer.payload.push_back(std::as_bytes(std::span(kept->data(), kept->size())));
  answer.memory = kept;
  return answer;
}

static_assert(static_cast<uint8_t>(PeerRole::kAdmin) == static_cast<uint8_t>(CallerRole::kAdmin) &&
              static_cast<uint8_t>(PeerRole::kCoordinator) ==
                  static_cast<uint8_t>(CallerRole::kCoordinator) &&
              static_cast<uint8_t>(PeerRole::kServer) ==
                  static_cast<uint8_t>(CallerRole::kServer) &&
              static_cast<uint8_t>(PeerRole::kWorker) ==
                  static_cast<uint8_t>(CallerRole::kWorker) &&
              static_cast<uint8_t>(PeerRole::kViewer) == static_cast<uint8_t>(CallerRole::kViewer));
constexpr CallerRole caller_role(PeerRole role) {
  return static_cast<CallerRole>(role);
}

}  // namespace flux
