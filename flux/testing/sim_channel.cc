#include "flux/testing/sim_channel.h"

#include <algorithm>

#include "flux/rpc/payload.h"

namespace flux {

struct SimNet::Endpoint {
  std::string address;
  SimNode* node;  // valid while open
  Service* service;
  bool open = true;
};

// One connection. It may be broken for its client while the peer still handles what it got.
struct SimNet::Link {
  uint64_t id = 0;
  std::shared_ptr<Endpoint> endpoint;
  std::weak_ptr<Calls> calls;
  std::string from;
  bool up = true;
  bool closed = false;  // the service was told
};

struct SimNet::Message {
  Verb verb = 0;
  uint64_t id = 0;
  PeerRole role = PeerRole::kWorker;
  PayloadMemory bytes;
};

// The calling side of a channel.
struct SimNet::Calls {
  struct Pending {
    RpcCall call;
    uint64_t link = 0;
    bool placed = false;
  };
  SimNet* net;
  SimNode* from;
  std::string address;
  PeerRole role;
  std::function<void()> on_break;
  std::shared_ptr<Link> link;
  std::map<uint64_t, Pending> pending;
  uint64_t last = 0;
};

class SimChannel final : public Channel {
 public:
  SimChannel(SimNet* net, SimNode* from, std::string address, PeerRole role,
             std::function<void()> on_break)
      : calls_(std::make_shared<SimNet::Calls>()) {
    calls_->net = net;
    calls_->from = from;
    calls_->address = std::move(address);
    calls_->role = role;
    calls_->on_break = std::move(on_break);
  }
  ~SimChannel() override {
    if (calls_->link) calls_->net->break_link(calls_->link, false);
    calls_->pending.clear();
  }
  uint64_t call(RpcCall call) override {
    const uint64_t id = ++calls_->last;
    const TimeNs timeout = call.timeout_ns;
    calls_->pending.emplace(id, SimNet::Calls::Pending{std::move(call), 0, false});
    SimNet* net = calls_->net;
    const std::weak_ptr<SimNet::Calls> weak = calls_;
    calls_->from->post(timeout, [net, weak, id, timeout] {
      if (const auto calls = weak.lock())
        net->finish(calls, id,
                    error(Code::kUnavailable, "{}: no answer within {} ms", calls->address,
                          timeout / kMillisecond),
                    {});
    });
    calls_->from->post(net->world_->draw(0, kMillisecond / 5), [net, weak, id] {
      if (const auto calls = weak.lock()) net->transmit(calls, id);
    });
    return id;
  }
  void cancel(uint64_t id) override {
    calls_->from->post(0, [net = calls_->net, weak = std::weak_ptr(calls_), id] {
      if (const auto calls = weak.lock())
        net->finish(calls, id, Status(Code::kCancelled, "the call was cancelled"), {});
    });
  }
  std::string peer() const override { return calls_->address; }

 private:
  std::shared_ptr<SimNet::Calls> calls_;
};

void SimNet::listen(const std::string& address, SimNode* node, Service* service) {
  close(address);
  endpoints_[address] = std::make_shared<Endpoint>(Endpoint{address, node, service});
}

void SimNet::close(const std::string& address) {
  const auto it = endpoints_.find(address);
  if (it == endpoints_.end()) return;
  const auto endpoint = it->second;
  endpoints_.erase(it);
  endpoint->open = false;
  for (const auto& weak : std::vector(links_))
    if (const auto link = weak.lock(); link && link->endpoint == endpoint)
      break_link(link, world_->random().chance(0.7));
}

std::unique_ptr<Channel> SimNet::connect(SimNode* from, const std::string& address, PeerRole role,
                                         std::function<void()> on_break) {
  return std::make_unique<SimChannel>(this, from, address, role, std::move(on_break));
}

void SimNet::node_died(const SimNode* node) {
  for (const auto& weak : std::vector(links_))
    if (const auto link = weak.lock(); link && link->from == node->name()) break_link(link, false);
  for (const auto& [address, endpoint] : std::map(endpoints_))
    if (endpoint->node == node) close(address);
}

void SimNet::heal() {
  faults_ = {};
  isolated_.clear();
  cuts_.clear();
}

bool SimNet::blocked(const std::string& from, const std::string& to) const {
  const auto until = [&](const std::string& name) {
    const auto it = isolated_.find(name);
    return it == isolated_.end() ? TimeNs{0} : it->second;
  };
  const auto cut = cuts_.find({from, to});
  const TimeNs one_way = cut == cuts_.end() ? 0 : cut->second;
  return std::max({until(from), until(to), one_way}) > world_->now_ns();
}

std::vector<TimeNs> SimNet::fate(const std::shared_ptr<Link>& link, bool back) {
  ++messages_;
  Random& random = world_->random();
  const std::string& peer = link->endpoint->node->name();
  const bool stopped = back ? blocked(peer, link->from) : blocked(link->from, peer);
  if (stopped || random.chance(faults_.lost)) return {};
  if (random.chance(faults_.breaks)) {
    break_link(link, true);
    if (random.chance(0.5)) return {};
  }
  std::vector<TimeNs> delays = {world_->draw(0, faults_.delay_max)};
  if (random.chance(faults_.doubled)) delays.push_back(world_->draw(0, 4 * faults_.delay_max));
  return delays;
}

std::shared_ptr<SimNet::Link> SimNet::open_link(Calls* calls) {
  if (calls->link && calls->link->up) return calls->link;
  const auto it = endpoints_.find(calls->address);
  if (it == endpoints_.end()) return nullptr;
  const std::string& peer = it->second->node->name();
  if (blocked(calls->from->name(), peer) || blocked(peer, calls->from->name())) return nullptr;
  calls->link = std::make_shared<Link>();
  calls->link->id = ++last_link_;
  calls->link->endpoint = it->second;
  calls->link->from = calls->from->name();
  std::erase_if(links_, [](const auto& weak) { return weak.expired(); });
  links_.push_back(calls->link);
  return calls->link;
}

void SimNet::break_link(const std::shared_ptr<Link>& link, bool client_notices) {
  if (!link->up) return;
  link->up = false;
  if (link->endpoint->open)
    link->endpoint->node->post(world_->draw(0, 2 * kSecond), [link] {
      if (!link->endpoint->open || link->closed) return;
      link->closed = true;
      link->endpoint->service->closed(link->id);
    });
  const auto calls = link->calls.lock();
  if (!calls || !client_notices) return;
  if (calls->on_break)
    calls->from->post(0, [weak = link->calls] {
      if (const auto calls = weak.lock()) calls->on_break();
    });
  std::vector<uint64_t> ids;
  for (const auto& [id, pending] : calls->pending)
    if (pending.link == link->id) ids.push_back(id);
  for (const uint64_t id : ids)
    calls->from->post(0, [this, weak = link->calls, id, link] {
      const auto calls = weak.lock();
      if (!calls) return;
      const auto it = calls->pending.find(id);
      if (it != calls->pending.end() && it->second.link == link->id)
        finish(calls, id, error(Code::kUnavailable, "{}: the connection broke", calls->address),
               {});
    });
}

void SimNet::transmit(const std::shared_ptr<Calls>& calls, uint64_t id) {
  const auto it = calls->pending.find(id);
  if (it == calls->pending.end()) return;
  const auto link = open_link(calls.get());
  if (!link) {  // nobody listens there: try again within the call's own time
    calls->from->post(world_->draw(50 * kMillisecond, 500 * kMillisecond),
                      [this, weak = std::weak_ptr(calls), id] {
                        if (const auto calls = weak.lock()) transmit(calls, id);
                      });
    return;
  }
  link->calls = calls;
  it->second.link = link->id;
  const RpcCall& call = it->second.call;
  auto message = std::make_shared<Message>();
  message->verb = call.verb;
  message->id = id;
  message->role = calls->role;
  message->bytes.control = call.control;
  message->bytes.payload.resize_discard(total_bytes(call.payload));
  gather(call.payload, message->bytes.payload.data());
  world_->trace(hash_bytes(call.control, call.verb));
  tell(link->from, calls->address, "->", call.verb);
  for (const TimeNs delay : fate(link, false))
    if (link->endpoint->open)
      link->endpoint->node->post(delay, [this, link, message] { deliver(link, message); });
}

void SimNet::deliver(const std::shared_ptr<Link>& link, const std::shared_ptr<Message>& message) {
  Endpoint* endpoint = link->endpoint.get();
  if (!endpoint->open || link->closed) return;
  Responder respond([this, link, message](const Status& status, const RpcAnswer& reply) {
    answer(link, *message, status, reply);
  });
  if (!endpoint->service->allows(message->role, message->verb)) {
    respond.fail(
        invalid("role {} may not use verb {}", peer_role_name(message->role), message->verb));
    return;
  }
  RpcRequest request;
  request.verb = message->verb;
  request.role = message->role;
  request.peer = link->from;
  request.connection = link->id;
  request.control = message->bytes.control;
  request.payload = message->bytes.payload.span();
  request.memory = message;
  endpoint->service->handle(std::move(request), std::move(respond));
}

void SimNet::answer(const std::shared_ptr<Link>& link, const Message& request, const Status& status,
                    const RpcAnswer& answer) {
  if (!link->endpoint->open || !link->endpoint->node->alive()) return;  // the dead say nothing
  auto reply = std::make_shared<Message>();
  reply->bytes.control = answer.control;
  reply->bytes.payload.resize_discard(total_bytes(answer.payload));
  gather(answer.payload, reply->bytes.payload.data());
  const bool traced = !untraced || !untraced(request.verb);
  world_->trace(hash_bytes(traced ? answer.control : "", static_cast<uint64_t>(status.code())));
  const auto calls = link->calls.lock();
  const auto delays = fate(link, true);
  if (!calls || !link->up) return;
  for (const TimeNs delay : delays)
    calls->from->post(delay, [this, weak = link->calls, link, id = request.id, reply, status] {
      if (const auto calls = weak.lock(); calls && link->up)
        arrive(calls, link->id, id, reply, status);
    });
}

void SimNet::arrive(const std::shared_ptr<Calls>& calls, uint64_t link, uint64_t id,
                    const std::shared_ptr<Message>& reply, const Status& status) {
  const auto it = calls->pending.find(id);
  if (it == calls->pending.end() || it->second.link != link || it->second.placed) return;
  RpcReply out;
  out.answered = true;
  if (!status.is_ok()) return finish(calls, id, status, std::move(out));
  out.control = reply->bytes.control;
  if (!it->second.call.place) {
    out.payload = reply->bytes.payload.span();
    out.memory = reply;
    return finish(calls, id, status, std::move(out));
  }
  it->second.placed = true;
  auto spans = it->second.call.place(out.control, reply->bytes.payload.size());
  if (!spans.is_ok()) return finish(calls, id, spans.status(), std::move(out));
  const Status fits = check_placed(spans.value(), reply->bytes.payload.size());
  if (!fits.is_ok()) return finish(calls, id, fits, std::move(out));
  calls->from->post(world_->draw(0, kMillisecond / 5),
                    [this, weak = std::weak_ptr(calls), id, reply, spans = spans.value()] {
                      const auto calls = weak.lock();
                      if (!calls || !calls->pending.contains(id)) return;
                      const ByteSpan bytes = reply->bytes.payload.span();
                      copy_spans(std::span(&bytes, 1), spans);
                      RpcReply out;
                      out.answered = true;
                      out.control = reply->bytes.control;
                      finish(calls, id, Status::ok(), std::move(out));
                    });
}

void SimNet::finish(const std::shared_ptr<Calls>& calls, uint64_t id, Status status,
                    RpcReply reply) {
  const auto it = calls->pending.find(id);
  if (it == calls->pending.end()) return;
  RpcCall call = std::move(it->second.call);
  calls->pending.erase(it);
  world_->trace(hash_pair(call.verb, static_cast<uint64_t>(status.code())));
  if (!status.is_ok())
    tell(calls->from->name(), calls->address, status.message().c_str(), call.verb);
  if (call.done) call.done(std::move(status), std::move(reply));
}

void SimNet::tell(const std::string& from, const std::string& to, const char* what, Verb verb) {
  if (!world_->telling()) return;
  const std::string name = verb_name ? verb_name(verb) : std::to_string(verb);
  world_->tell(fmt::format("{} {} {}: {}", from, what, to, name));
}

}  // namespace flux
