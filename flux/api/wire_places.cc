// Messages about places: who is what for which shard (open_job, holdings, assign, seal, copy).
#include <algorithm>

#include "flux/api/wire_message.h"
#include "flux/api/wire_values.h"

namespace flux {
namespace {

constexpr uint32_t kRoles = static_cast<uint32_t>(ReplicaRole::kLearner) + 1;
constexpr uint32_t kSealed = 1, kComplete = 2;

// Ids travel one higher, so that "none" is 0, one byte.
uint32_t put_server(ServerId server) {
  return server + 1;
}
Status take_server(const char* verb, uint32_t number, ServerId* out) {
  *out = number - 1;
  if (number > kWireServersMax)
    return invalid("{}: server {}, ids are below {}", verb, *out, kWireServersMax);
  return Status::ok();
}

// A column of values; if all are the same, one value.
template <typename Items, typename Column, typename Get>
void put_column(const Items& items, Column* column, Get get) {
  const bool alike = std::all_of(items.begin(), items.end(),
                                 [&](const auto& item) { return get(item) == get(items[0]); });
  const size_t n = alike ? std::min<size_t>(1, items.size()) : items.size();
  column->Reserve(static_cast<int>(n));
  for (size_t i = 0; i < n; ++i) column->Add(get(items[i]));
}
template <typename Column>
Status check_column(const char* verb, const char* what, const Column& column, size_t items) {
  const auto n = static_cast<size_t>(column.size());
  if (n == items || (n == 1 && items > 0)) return Status::ok();
  return invalid("{}: {} {} for {} shards", verb, n, what, items);
}
template <typename Column>
auto at_row(const Column& column, size_t i) {
  return column[column.size() == 1 ? 0 : static_cast<int>(i)];
}

Status take_role(const char* verb, uint32_t number, ReplicaRole* out) {
  if (number >= kRoles)
    return invalid("{}: role {}; 0 is none, 1 primary, 2 backup, 3 learner", verb, number);
  *out = static_cast<ReplicaRole>(number);
  return Status::ok();
}

template <typename Items, typename Message>
void put_places(const Items& items, Message* out) {
  std::vector<ShardEpoch> epochs;
  out->mutable_shards()->Reserve(static_cast<int>(items.size()));
  for (const auto& item : items) {
    out->add_shards(item.shard);
    epochs.push_back(item.epoch);
  }
  put_epochs(epochs, out->mutable_epochs(), out->mutable_epoch_of());
  put_column(items, out->mutable_roles(),
             [](const auto& item) { return static_cast<uint32_t>(item.role); });
  put_column(items, out->mutable_backups(),
             [](const auto& item) { return put_server(item.backup); });
}

// Shard, epoch, role and backup of each.
template <typename Message, typename Item>
Status take_places(const char* verb, const Message& in, std::vector<Item>* out) {
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  FLUX_RETURN_IF_ERROR(take_rising(verb, in.shards(), &shards));
  const Status status = take_epochs(in.epochs(), in.epoch_of(), shards.size(), &epochs);
  if (!status.is_ok()) return status.with_context(verb);
  FLUX_RETURN_IF_ERROR(check_column(verb, "roles", in.roles(), shards.size()));
  FLUX_RETURN_IF_ERROR(check_column(verb, "backups", in.backups(), shards.size()));
  out->assign(shards.size(), {});
  for (size_t i = 0; i < shards.size(); ++i) {
    Item& item = (*out)[i];
    item.shard = shards[i];
    item.epoch = epochs[i];
    FLUX_RETURN_IF_ERROR(take_role(verb, at_row(in.roles(), i), &item.role));
    FLUX_RETURN_IF_ERROR(take_server(verb, at_row(in.backups(), i), &item.backup));
  }
  return Status::ok();
}

void put_assignments(const Assignments& m, wire::Assignments* out) {
  put_places(m.shards, out);
  put_column(m.shards, out->mutable_at_ops(),
             [](const ShardAssignment& place) { return place.at_op + 1; });
  for (const std::string& address : m.servers) out->add_servers(address);
}

Status take_assignments(const char* verb, const wire::Assignments& in, Assignments* m) {
  FLUX_RETURN_IF_ERROR(take_places(verb, in, &m->shards));
  FLUX_RETURN_IF_ERROR(check_column(verb, "log heads", in.at_ops(), m->shards.size()));
  for (size_t i = 0; i < m->shards.size(); ++i) m->shards[i].at_op = at_row(in.at_ops(), i) - 1;
  if (static_cast<uint32_t>(in.servers_size()) > kWireServersMax)
    return invalid("{}: {} servers", verb, in.servers_size());
  m->servers.assign(in.servers().begin(), in.servers().end());
  return Status::ok();
}

void put_states(const std::vector<ShardState>& states, wire::States* out) {
  put_places(states, out);
  put_column(states, out->mutable_flags(), [](const ShardState& s) {
    return (s.sealed ? kSealed : 0U) | (s.complete ? kComplete : 0U);
  });
  put_column(states, out->mutable_ops(), [](const ShardState& s) { return s.op; });
  put_column(states, out->mutable_hashes(), [](const ShardState& s) { return s.stream_hash; });
  put_column(states, out->mutable_replicated(), [](const ShardState& s) { return s.replicated; });
}

Status take_states(const char* verb, const wire::States& in, std::vector<ShardState>* out) {
  FLUX_RETURN_IF_ERROR(take_places(verb, in, out));
  FLUX_RETURN_IF_ERROR(check_column(verb, "flags", in.flags(), out->size()));
  FLUX_RETURN_IF_ERROR(check_column(verb, "log heads", in.ops(), out->size()));
  FLUX_RETURN_IF_ERROR(check_column(verb, "stream hashes", in.hashes(), out->size()));
  FLUX_RETURN_IF_ERROR(check_column(verb, "replicated heads", in.replicated(), out->size()));
  for (size_t i = 0; i < out->size(); ++i) {
    ShardState& state = (*out)[i];
    state.sealed = (at_row(in.flags(), i) & kSealed) != 0;
    state.complete = (at_row(in.flags(), i) & kComplete) != 0;
    state.op = at_row(in.ops(), i);
    state.stream_hash = at_row(in.hashes(), i);
    state.replicated = at_row(in.replicated(), i);
  }
  return Status::ok();
}

}  // namespace

std::string encode_message(const OpenJob& m) {
  wire::OpenJob out;
  out.set_name(m.name);
  put_job(m.job, out.mutable_job());
  out.set_incarnation(m.incarnation);
  out.set_term(m.term);
  out.set_self(m.self);
  put_assignments(m.places, out.mutable_places());
  out.set_boot(m.boot);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, OpenJob* m) {
  wire::OpenJob in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "open_job", &in));
  *m = {in.name(), take_job(in.job()), in.incarnation(), in.term(), in.self(), {}, in.boot()};
  if (m->name.empty() || m->incarnation == 0)
    return invalid("open_job: a job has a name and an incarnation that is not 0");
  if (m->self >= kWireServersMax)
    return invalid("open_job: server {}, ids are below {}", m->self, kWireServersMax);
  return take_assignments("open_job", in.places(), &m->places);
}

std::string encode_message(const HoldingsRequest& m) {
  wire::Holdings out;
  out.set_name(m.name);
  out.set_term(m.term);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, HoldingsRequest* m) {
  wire::Holdings in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "holdings", &in));
  *m = {in.name(), in.term()};
  if (m->name.empty()) return invalid("holdings: a job has a name");
  return Status::ok();
}

std::string encode_message(const Holdings& m) {
  wire::HoldingsReply out;
  out.set_incarnation(m.incarnation);
  out.set_term(m.term);
  out.set_self(put_server(m.self));
  put_states(m.shards, out.mutable_shards());
  for (const auto& [pass, geometry] : m.passes) {
    wire::OpenedPass* opened = out.add_passes();
    opened->set_pass(pass);
    opened->set_geometry(geometry);
  }
  out.set_closed_below(m.closed_below);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, Holdings* m) {
  wire::HoldingsReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of holdings", &in));
  *m = {};
  m->incarnation = in.incarnation();
  m->term = in.term();
  FLUX_RETURN_IF_ERROR(take_server("answer of holdings", in.self(), &m->self));
  for (const wire::OpenedPass& opened : in.passes()) m->passes[opened.pass()] = opened.geometry();
  m->closed_below = in.closed_below();
  return take_states("answer of holdings", in.shards(), &m->shards);
}

std::string encode_message(const AssignRequest& m) {
  wire::Assign out;
  put_call(m.call, out.mutable_call());
  put_assignments(m.places, out.mutable_places());
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, AssignRequest* m) {
  wire::Assign in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "assign", &in));
  FLUX_RETURN_IF_ERROR(take_call("assign", in.call(), &m->call));
  return take_assignments("assign", in.places(), &m->places);
}

std::string encode_message(const SealRequest& m) {
  wire::Seal out;
  put_call(m.call, out.mutable_call());
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, SealRequest* m) {
  wire::Seal in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "seal", &in));
  return take_call("seal", in.call(), &m->call);
}

std::string encode_message(const CopyRequest& m) {
  wire::Copy out;
  put_call(m.call, out.mutable_call());
  out.set_target(m.target);
  out.set_address(m.address);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, CopyRequest* m) {
  wire::Copy in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "copy", &in));
  *m = {{}, in.target(), in.address()};
  if (m->target >= kWireServersMax || m->address.empty())
    return invalid("copy: to server {} at '{}'; a target has an id below {} and an address",
                   m->target, m->address.substr(0, 64), kWireServersMax);
  return take_call("copy", in.call(), &m->call);
}

std::string encode_message(const StatesReply& m) {
  wire::States out;
  put_states(m.shards, &out);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, StatesReply* m) {
  wire::States in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer with states", &in));
  return take_states("answer with states", in, &m->shards);
}

}  // namespace flux
