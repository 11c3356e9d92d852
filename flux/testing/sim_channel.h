// SimNet and SimChannel: rpc over a simulated network, for the production stubs and services.
//
// A channel copies control and payload of a call into a message that the network loses, doubles,
// delays (and so reorders) as the seed says; a Service at the other end handles it on its own node,
// and its answer travels back the same way. Connections break, peers die and come back under the
// same address: a message to the dead one never reaches its successor. Time-outs run on simulated
// time; `done` is called exactly once, and never when the owner's node is dead or the channel gone.
// The caller's spans are read when the message leaves, not in call(), and placed memory is written
// a moment after place(): whoever frees them too early is found by the address sanitizer.
// Not thread-safe: one world is one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flux/rpc/channel.h"
#include "flux/rpc/service.h"
#include "flux/testing/sim_node.h"

namespace flux {

struct NetFaults {
  double lost = 0;     // chance that a message (request or answer) is lost
  double doubled = 0;  // ... comes twice
  double breaks = 0;   // ... takes its connection with it
  TimeNs delay_max = 2 * kMillisecond;
};

class SimNet {
 public:
  SimNet(SimWorld* world, NetFaults faults) : world_(world), faults_(faults) {}

  struct Endpoint;
  // From now on `service` answers at `address`; a former one there is closed. Until close().
  void listen(const std::string& address, SimNode* node, Service* service);
  void close(const std::string& address);
  // `on_break`: told when a connection that stood has broken and its caller noticed.
  std::unique_ptr<Channel> connect(SimNode* from, const std::string& address, PeerRole role,
                                   std::function<void()> on_break = nullptr);

  // The process is gone: peers see their connections break, at once or only by their time-outs.
  void node_died(const SimNode* node);
  // Nothing passes between this node and any other until then.
  void isolate(const std::string& node, TimeNs until) { isolated_[node] = until; }
  // Nothing passes from the one to the other until then; the other way it may. Connections stay
  // open, new ones cannot be made.
  void cut(const std::string& from, const std::string& to, TimeNs until) {
    cuts_[{from, to}] = until;
  }
  // From now on the network is perfect.
  void heal();

  uint64_t messages() const { return messages_; }
  // Verbs whose answers tell of the machine (memory, CPU time), which no seed decides.
  std::function<bool(Verb)> untraced;
  // How messages read in the story: name of a verb.
  std::function<std::string(Verb)> verb_name;

 private:
  friend class SimChannel;
  struct Link;
  struct Calls;
  struct Message;

  bool blocked(const std::string& from, const std::string& to) const;
  // Delays at which copies of a message (an answer, if `back`) arrive; none: it is lost.
  std::vector<TimeNs> fate(const std::shared_ptr<Link>& link, bool back);
  std::shared_ptr<Link> open_link(Calls* calls);
  void break_link(const std::shared_ptr<Link>& link, bool client_notices);
  void transmit(const std::shared_ptr<Calls>& calls, uint64_t id);
  void deliver(const std::shared_ptr<Link>& link, const std::shared_ptr<Message>& message);
  void answer(const std::shared_ptr<Link>& link, const Message& request, const Status& status,
              const RpcAnswer& answer);
  void arrive(const std::shared_ptr<Calls>& calls, uint64_t link, uint64_t id,
              const std::shared_ptr<Message>& reply, const Status& status);
  void finish(const std::shared_ptr<Calls>& calls, uint64_t id, Status status, RpcReply reply);
  void tell(const std::string& from, const std::string& to, const char* what, Verb verb);

  SimWorld* world_;
  NetFaults faults_;
  std::map<std::string, std::shared_ptr<Endpoint>> endpoints_;
  std::vector<std::weak_ptr<Link>> links_;
  std::map<std::string, TimeNs> isolated_;
  std::map<std::pair<std::string, std::string>, TimeNs> cuts_;
  uint64_t last_link_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace flux
