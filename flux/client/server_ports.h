// ServerPorts: the ports of one lane to the servers of a job, which come and go.
//
// A port is made when it is first needed, at the address that the map names, and dropped when the
// map names that address no more. Dropping ends its calls at once (ReachServer's promise), so that
// nobody waits out the time of a call to a server that hangs.
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
  };
  // A call under way. Its maker derives from it.
  struct Call {
    enum class Kind : uint8_t { kPull, kPush, kConfirm };
    explicit Call(Kind what) : kind(what) {}
    virtual ~Call() = default;
    const Kind kind;
    std::weak_ptr<Port> port;
    bool over = false;
  };

  ServerPorts(ReachServer reach, ClusterMap map) : reach_(std::move(reach)), map_(std::move(map)) {}

  const ClusterMap& map() const { return map_; }
  void set_map(ClusterMap map) { map_ = std::move(map); }
  // Null: no such server now.
  std::shared_ptr<Port> port(ServerId server);
  static void begin(const std::shared_ptr<Port>& port, const std::shared_ptr<Call>& call);
  // The first answer to a call; false: it is over already.
  static bool end(Call* call);
  // Drops the ports of servers that the map names no more; returns the calls that ended by it.
  std::vector<std::shared_ptr<Call>> drop_gone();
  // "server 1": one that owes an answer to such a call; "" if none.
  std::string waits_for(Call::Kind kind) const;

 private:
  bool gone(const Port& port) const;

  ReachServer reach_;
  ClusterMap map_;
  std::map<ServerId, std::shared_ptr<Port>> ports_;
};

}  // namespace flux
