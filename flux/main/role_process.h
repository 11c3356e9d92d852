// What the processes of all roles share: names, secrets, and one line at their end.
//
// Threads: any; values. Failure: kInvalid names the file or address.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/main/commands.h"
#include "flux/rpc/io_loop.h"
#include "flux/rpc/security.h"
#include "flux/rpc/socket_channel.h"

namespace flux {

// A role whose coordinator does not answer so long after its start gives up.
constexpr TimeNs kFirstAnswerNs = 8 * kSecond;

// Reads the token; checks that at most one kind of proof is given.
Result<SecurityOptions> security_options(const SecurityArguments& arguments);

// Who opens connections, and how.
struct Caller {
  PeerRole role = PeerRole::kWorker;
  std::string name;
  SecurityOptions security;
  std::string chaos;                    // faults for tests; empty: none
  std::string faults = {};              // file of faults that come while it runs (rpc/fault_file.h)
  std::function<void()> on_break = {};  // a connection that stood has broken; on its loop
};

// A channel, and the socket under it, whose counters may be read from any thread.
struct OpenedChannel {
  std::unique_ptr<Channel> channel;
  const SocketChannel* socket = nullptr;
};
// Does not connect. `salt`: so that channels of one process have different faults.
Result<OpenedChannel> open_channel(IoLoop* loop, const std::string& address, const Caller& caller,
                                   uint64_t salt);

// The same for a coordinator and its standbys: "a,b,c", tried in turn
// (client/coordinator_channel.h). It has no one socket.
Result<OpenedChannel> open_coordinator(IoLoop* loop, const std::string& addresses,
                                       const Caller& caller);

std::string host_name();
// "server@host.1234": for a role without a given name.
std::string default_name(const char* role);
// Where others reach a listener: its own address, with this host's name instead of "any address".
std::string advertised(const std::string& listen);

}  // namespace flux
