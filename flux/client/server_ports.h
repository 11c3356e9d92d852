// ServerPorts: the ports of one lane to the servers of a job, which come and go.
//
// A port is made when it is first needed, at the address that the map names, and dropped when the
// map names that address no more. Dropping ends its calls at once (ReachServer's promise), so that
// nobody waits out the time of a call to a server that hangs. It also knows which servers do not
// answer: what a worker tells the coordinator about them is a guess, and harmless if it is wrong.
// Threads: one owner. Failure: a server that is unknown, gone or cannot be reached has no port.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/server.h"

namespace flux {

// Makes a port to a server; null if that is not possible. Called on the lane's thread. When the
// last holder lets go of a port, its calls end: their `done` is never called, and nobody touches
// their memory any more.
using ReachServer =
    std::function<std::shared_ptr<ServerPort>(ServerId server, const std::string& address)>;

// Ports that are there already, by ServerId.
ReachServer reach_fixed(std::vector<std::shared_ptr<ServerPort>> ports);

class ServerPorts {
 public:
  struct Call;
  struct Port {
    ServerId server = 0;
    std::string address;
    std::shared_ptr<ServerPort> port;
    std::vector<std::shared_ptr<Call>> calls;  // not answered
    TimeNs owes_since = -1;  // a prompt answer, without having given any; -1: it owes none
    TimeNs failed_ns = -1;   // the last such call could not reach it; -1: all is well
  };
  // A call under way. Its maker derives from it.
  struct Call {
    enum class Kind : uint8_t { kPull, kPush, kConfirm };
    // `is_prompt`: the server answers at once, whatever it is; else it may wait for others.
    Call(Kind what, bool is_prompt) : kind(what), prompt(is_prompt) {}
    virtual ~Call() = default;
    const Kind kind;
    const bool prompt;
    std::weak_ptr<Port> port;
    bool over = false;
  };

  ServerPorts(ReachServer reach, ClusterMap map) : reach_(std::move(reach)), map_(std::move(map)) {}

  const ClusterMap& map() const { return map_; }
  void set_map(ClusterMap map) { map_ = std::move(map); }
  // Null: no such server now.
  std::shared_ptr<Port> port(ServerId server);
  static void begin(const std::shared_ptr<Port>& port, const std::shared_ptr<Call>& call,
                    TimeNs now);
  // The first answer to a call; false: it is over already. `reached`: the server gave it.
  static bool end(Call* call, bool reached, TimeNs now);
  // Drops the ports of servers that the map names no more; returns the calls that ended by it.
  std::vector<std::shared_ptr<Call>> drop_gone();
  // "server 1": one that owes an answer to such a call; "" if none.
  std::string waits_for(Call::Kind kind) const;
  // Servers that could not be reached by the last call, or have owed an answer for `patience` while
  // the owner did nothing but wait, since `idle_since`: before that answers may have lain unread.
  std::vector<ServerId> suspects(TimeNs patience, TimeNs idle_since, TimeNs now) const;

 private:
  bool gone(const Port& port) const;

  ReachServer reach_;
  ClusterMap map_;
  std::map<ServerId, std::shared_ptr<Port>> ports_;
};

}  // namespace flux
