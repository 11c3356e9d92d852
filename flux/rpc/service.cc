#include "flux/rpc/service.h"

namespace flux {

const char* peer_role_name(PeerRole role) {
  switch (role) {
    case PeerRole::kAdmin:
      return "admin";
    case PeerRole::kCoordinator:
      return "coordinator";
    case PeerRole::kServer:
      return "server";
    case PeerRole::kWorker:
      return "worker";
    case PeerRole::kViewer:
      return "viewer";
  }
  return "unknown";
}

Status check_allowed(const Service& service, PeerRole role, Verb verb) {
  if (service.allows(role, verb)) return Status::ok();
  return invalid("role {} may not use verb {}", peer_role_name(role), verb);
}

}  // namespace flux
