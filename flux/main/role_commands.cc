// The roles of a cluster as commands: coordinator, server, worker; and certificates.
#include "flux/main/commands.h"

namespace flux {

int coordinator_command(const CoordinatorArguments&) {
  return report(error(Code::kUnavailable, "this role is not built in yet"));
}
int server_command(const ServerArguments&) {
  return report(error(Code::kUnavailable, "this role is not built in yet"));
}
int worker_command(const WorkerArguments&) {
  return report(error(Code::kUnavailable, "this role is not built in yet"));
}
int certs_command(const CertsArguments&) {
  return report(error(Code::kUnavailable, "certificates are not built in yet"));
}

}  // namespace flux
