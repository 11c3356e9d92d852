// What the processes of all roles share: names, secrets, and one line at their end.
//
// Threads: any; values. Failure: kInvalid names the file or address.
#pragma once

#include <string>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/main/commands.h"
#include "flux/rpc/security.h"

namespace flux {

// A role whose coordinator does not answer so long after its start gives up.
constexpr TimeNs kFirstAnswerNs = 8 * kSecond;
// A role that has not heard of its coordinator so long ends with that reason.
constexpr TimeNs kSilenceNs = 10 * kSecond;

// Reads the token; checks that at most one kind of proof is given.
Result<SecurityOptions> security_options(const SecurityArguments& arguments);

std::string host_name();
// "server@host.1234": for a role without a given name.
std::string default_name(const char* role);
// Where others reach a listener: its own address, with this host's name instead of "any address".
std::string advertised(const std::string& listen);

}  // namespace flux
