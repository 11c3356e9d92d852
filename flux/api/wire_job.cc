// Messages between workers and coordinator: what JobPort says.
#include "flux/api/wire_message.h"
#include "flux/api/wire_values.h"

namespace flux {
namespace {

constexpr uint32_t kCodes = static_cast<uint32_t>(Code::kCancelled) + 1;
constexpr int kHeldMax = 1 << 14;
constexpr int kAheadMax = 1 << 12;
constexpr size_t kReasonMax = 4096;  // more of it is cut off
constexpr uint32_t kLeaseKinds = static_cast<uint32_t>(LeaseAnswer::Kind::kEnd) + 1;

void put_report(const WorkerReport& m, wire::WorkerReport* out) {
  out->set_examples(m.examples);
  out->set_batches(m.batches);
  out->set_loss_sum(m.loss_sum);
  if (m.train_auc) out->set_train_auc(*m.train_auc);
  out->set_duplicates(m.duplicates);
  out->set_resends(m.resends);
  out->set_bytes_sent(m.bytes_sent);
  out->set_bytes_received(m.bytes_received);
  out->set_cpu_s(m.cpu_s);
  out->set_rss_bytes(m.rss_bytes);
  out->mutable_stage_ns()->Assign(m.stage_ns.begin(), m.stage_ns.end());
  out->set_waits(m.waits);
  for (const BlockId& block : m.ahead) put_block(block, out->add_ahead());
  out->set_metrics(m.metrics);
  const std::vector<uint64_t> times = m.push_times.counts();
  out->mutable_push_times()->Assign(times.begin(), times.end());
  out->set_push_time_max_ns(m.push_times.max_ns());
  const std::vector<uint64_t> ages = m.push_ages.counts();
  out->mutable_push_ages()->Assign(ages.begin(), ages.end());
  out->set_push_age_max(m.push_ages.max());
  out->mutable_suspects()->Assign(m.suspects.begin(), m.suspects.end());
  for (const PhaseReport& phase : m.phases) {
    wire::PhaseReport* p = out->add_phases();
    p->set_examples(phase.examples);
    p->set_loss_sum(phase.loss_sum);
    if (phase.auc) p->set_auc(*phase.auc);
  }
  put_health(m.health, out->mutable_health());
}

Status take_report(const wire::WorkerReport& in, WorkerReport* m) {
  *m = {in.examples(),
        in.batches(),
        in.loss_sum(),
        in.has_train_auc() ? std::optional(in.train_auc()) : std::nullopt,
        in.duplicates(),
        in.resends(),
        in.bytes_sent(),
        in.bytes_received(),
        in.cpu_s(),
        in.rss_bytes(),
        {in.stage_ns().begin(), in.stage_ns().end()},
        in.waits(),
        {},
        in.metrics(),
        LatencyHistogram::of({in.push_times().data(), static_cast<size_t>(in.push_times_size())},
                             in.push_time_max_ns()),
        {in.suspects().begin(), in.suspects().end()},
        {},
        AgeHistogram::of({in.push_ages().data(), static_cast<size_t>(in.push_ages_size())},
                         in.push_age_max()),
        {}};
  if (static_cast<size_t>(in.phases_size()) > kReportPhasesMax)
    return invalid("a report of {} phases, at most {}", in.phases_size(), kReportPhasesMax);
  for (const wire::PhaseReport& p : in.phases())
    m->phases.push_back(
        {p.examples(), p.loss_sum(), p.has_auc() ? std::optional(p.auc()) : std::nullopt});
  FLUX_RETURN_IF_ERROR(take_health(in.health(), &m->health));
  if (m->suspects.size() > kSuspectsMax)
    return invalid("a report of {} suspects, at most {}", m->suspects.size(), kSuspectsMax);
  for (const ServerId suspect : m->suspects)
    if (suspect >= kWireServersMax)
      return invalid("a report of suspect {}, ids are below {}", suspect, kWireServersMax);
  if (in.ahead_size() > kAheadMax)
    return invalid("a report of {} blocks ahead, at most {}", in.ahead_size(), kAheadMax);
  m->ahead.resize(static_cast<size_t>(in.ahead_size()));
  for (int i = 0; i < in.ahead_size(); ++i)
    FLUX_RETURN_IF_ERROR(take_block(in.ahead(i), &m->ahead[static_cast<size_t>(i)]));
  return Status::ok();
}

void put_lease_request(const LeaseRequest& m, wire::Lease* out) {
  out->set_worker(m.worker);
  out->set_lane(m.lane);
  out->set_seq(m.seq);
  put_batches(m.applied, out->mutable_applied());
  for (const EvalReport& report : m.evaluated) {
    wire::EvalReport* e = out->add_evaluated();
    put_batch(report.id, e->mutable_id());
    e->set_scored(report.scored);
  }
  for (const RefusedBatch& refused : m.refused) {
    wire::RefusedBatch* r = out->add_refused();
    put_batch(refused.id, r->mutable_id());
    r->set_reason(refused.reason);
  }
}

Status take_lease_request(const wire::Lease& in, LeaseRequest* m) {
  *m = {in.worker(), in.lane(), in.seq(), {}, {}, {}};
  FLUX_RETURN_IF_ERROR(take_batches(in.applied(), "applied batches", &m->applied));
  if (in.evaluated_size() > kWireIdsMax)
    return invalid("{} evaluated batches, at most {}", in.evaluated_size(), kWireIdsMax);
  for (const wire::EvalReport& e : in.evaluated()) {
    EvalReport report;
    FLUX_RETURN_IF_ERROR(take_batch(e.id(), &report.id));
    report.scored = e.scored();
    m->evaluated.push_back(std::move(report));
  }
  if (in.refused_size() > kWireIdsMax)
    return invalid("{} refused batches, at most {}", in.refused_size(), kWireIdsMax);
  for (const wire::RefusedBatch& r : in.refused()) {
    RefusedBatch refused{{}, r.reason().substr(0, kReasonMax)};
    FLUX_RETURN_IF_ERROR(take_batch(r.id(), &refused.id));
    m->refused.push_back(std::move(refused));
  }
  return Status::ok();
}

void put_map(const ClusterMap& m, wire::ClusterMap* out) {
  out->mutable_server()->Assign(m.route.server.begin(), m.route.server.end());
  put_epochs(m.route.epoch, out->mutable_epochs(), out->mutable_epoch_of());
  for (const std::string& address : m.servers) out->add_servers(address);
  out->set_version(m.version);
}

Status take_map(const wire::ClusterMap& in, ClusterMap* m) {
  const auto shards = static_cast<size_t>(in.server_size());
  if (shards > kWireShardsMax) return invalid("a map of {} shards", shards);
  if (static_cast<uint32_t>(in.servers_size()) > kWireServersMax)
    return invalid("a map of {} servers", in.servers_size());
  m->version = in.version();
  m->servers.assign(in.servers().begin(), in.servers().end());
  m->route.server.assign(in.server().begin(), in.server().end());
  for (const ServerId server : m->route.server)
    if (server >= m->servers.size())
      return invalid("a map with a shard on server {} of {}", server, m->servers.size());
  return take_epochs(in.epochs(), in.epoch_of(), shards, &m->route.epoch);
}

template <typename Member>
Status take_member(const Member& in, BlockId* block, uint32_t* batches, uint32_t* skip_mask) {
  FLUX_RETURN_IF_ERROR(take_block(in.block(), block));
  if (in.batches() > kBatchesPerBlockMax)
    return invalid("a block of {} batches, at most {}", in.batches(), kBatchesPerBlockMax);
  *batches = in.batches();
  *skip_mask = in.skip_mask();
  return Status::ok();
}

void put_round(const SyncRound& round, wire::Round* out) {
  out->set_id(round.id);
  out->set_lanes(round.lanes);
  for (const RoundMember& member : round.members) {
    wire::RoundMember* r = out->add_members();
    put_block(member.block, r->mutable_block());
    r->set_batches(member.batches);
    r->set_skip_mask(member.skip_mask);
  }
}

Status take_round(const wire::Round& in, SyncRound* out) {
  if (in.members_size() > kWireIdsMax)
    return invalid("a round of {} members, at most {}", in.members_size(), kWireIdsMax);
  *out = {in.id(), {}, in.lanes()};
  for (const wire::RoundMember& r : in.members()) {
    RoundMember member;
    FLUX_RETURN_IF_ERROR(take_member(r, &member.block, &member.batches, &member.skip_mask));
    out->members.push_back(member);
  }
  return Status::ok();
}

void put_held(const HeldBlock& held, wire::HeldBlock* out) {
  put_block(held.id, out->mutable_block());
  out->set_lane(held.lane);
  out->set_applied(held.applied);
  out->set_evaluate(held.evaluate);
  if (held.round.id != 0) put_round(held.round, out->mutable_round());
}

Status take_held(const wire::HeldBlock& in, HeldBlock* out) {
  FLUX_RETURN_IF_ERROR(take_block(in.block(), &out->id));
  out->lane = in.lane();
  out->applied = in.applied();
  out->evaluate = in.evaluate();
  return take_round(in.round(), &out->round);
}

}  // namespace

std::string encode_message(const JoinRequest& m) {
  wire::Join out;
  out.set_name(m.name);
  out.set_boot(m.boot);
  out.set_threads(m.threads);
  out.set_host(m.host);
  out.set_pid(m.pid);
  for (const auto& [name, value] : m.model) {
    wire::Override* field = out.add_model();
    field->set_path(name);
    field->set_value(value);
  }
  out.set_incarnation(m.incarnation);
  for (const HeldBlock& held : m.held) put_held(held, out.add_held());
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, JoinRequest* m) {
  wire::Join in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "join", &in));
  *m = {in.name(), in.boot(), in.threads(), in.host(), in.pid(), {}, in.incarnation(), {}};
  for (const wire::Override& field : in.model()) m->model[field.path()] = field.value();
  if (m->name.empty()) return invalid("join: a worker has a name");
  if (m->threads < 1 || m->threads > 4096)
    return invalid("join: worker '{}' with {} threads, 1 to 4096", m->name, m->threads);
  if (in.held_size() > kHeldMax)
    return invalid("join: worker '{}' holds {} blocks, at most {}", m->name, in.held_size(),
                   kHeldMax);
  m->held.resize(static_cast<size_t>(in.held_size()));
  for (int i = 0; i < in.held_size(); ++i) {
    const Status status = take_held(in.held(i), &m->held[static_cast<size_t>(i)]);
    if (!status.is_ok()) return status.with_context("join");
  }
  return Status::ok();
}

std::string encode_message(const JoinReply& m) {
  wire::JoinReply out;
  out.set_worker(m.worker);
  put_job(m.job, out.mutable_job());
  out.set_incarnation(m.incarnation);
  put_map(m.map, out.mutable_map());
  out.set_report_every_ms(m.report_every_ms);
  out.set_waits(m.waits);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, JoinReply* m) {
  wire::JoinReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of join", &in));
  *m = {in.worker(), take_job(in.job()), in.incarnation(), {}, in.report_every_ms(), in.waits()};
  return take_map(in.map(), &m->map);
}

std::string encode_message(const LeaseRequest& m) {
  wire::Lease out;
  put_lease_request(m, &out);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, LeaseRequest* m) {
  wire::Lease in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "lease", &in));
  return take_lease_request(in, m);
}

std::string encode_message(const LeaseAnswer& m) {
  wire::LeaseReply out;
  out.set_kind(static_cast<uint32_t>(m.kind));
  put_block(m.lease.id, out.mutable_lease()->mutable_block());
  out.mutable_lease()->set_batches(m.lease.batches);
  out.mutable_lease()->set_skip_mask(m.lease.skip_mask);
  out.mutable_lease()->set_attempt(m.lease.attempt);
  out.set_geometry(m.geometry);
  put_round(m.round, out.mutable_round());
  if (m.lr_scale != 1) out.set_lr_scale(m.lr_scale);
  out.set_examples_before(m.examples_before);
  out.set_wait_ms(m.wait_ms);
  out.set_reason(m.reason);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, LeaseAnswer* m) {
  wire::LeaseReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of lease", &in));
  if (in.kind() >= kLeaseKinds) return invalid("answer of lease: kind {}", in.kind());
  *m = {};
  m->kind = static_cast<LeaseAnswer::Kind>(in.kind());
  FLUX_RETURN_IF_ERROR(
      take_member(in.lease(), &m->lease.id, &m->lease.batches, &m->lease.skip_mask));
  m->lease.attempt = in.lease().attempt();
  m->geometry = in.geometry();
  FLUX_RETURN_IF_ERROR(take_round(in.round(), &m->round));
  FLUX_RETURN_IF_ERROR(take_lr_scale("answer of lease", in.lr_scale(), &m->lr_scale));
  m->examples_before = in.examples_before();
  m->wait_ms = in.wait_ms();
  m->reason = in.reason();
  return Status::ok();
}

std::string encode_message(const ReportRequest& m) {
  wire::Report out;
  out.set_worker(m.worker);
  put_report(m.report, out.mutable_report());
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, ReportRequest* m) {
  wire::Report in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "report", &in));
  m->worker = in.worker();
  return take_report(in.report(), &m->report);
}

std::string encode_message(const ReportAnswer& m) {
  wire::ReportReply out;
  out.set_stop(m.stop);
  out.set_map_version(m.map_version);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, ReportAnswer* m) {
  wire::ReportReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of report", &in));
  *m = {in.stop(), in.map_version()};
  return Status::ok();
}

std::string encode_message(const ClusterMap& m) {
  wire::ClusterMap out;
  put_map(m, &out);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, ClusterMap* m) {
  wire::ClusterMap in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of map", &in));
  return take_map(in, m);
}

std::string encode_message(const GeometryRequest& m) {
  wire::Geometry out;
  out.set_hash(m.hash);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, GeometryRequest* m) {
  wire::Geometry in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "geometry", &in));
  m->hash = in.hash();
  return Status::ok();
}

std::string encode_message(const GeometryReply& m) {
  wire::GeometryReply out;
  out.set_json(m.json);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, GeometryReply* m) {
  wire::GeometryReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of geometry", &in));
  m->json = in.json();
  return Status::ok();
}

std::string encode_message(const LeaveRequest& m) {
  wire::Leave out;
  put_lease_request(m.last, out.mutable_last());
  put_report(m.report, out.mutable_report());
  out.mutable_why()->set_code(static_cast<uint32_t>(m.why.code()));
  out.mutable_why()->set_message(m.why.message());
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, LeaveRequest* m) {
  wire::Leave in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "leave", &in));
  FLUX_RETURN_IF_ERROR(take_lease_request(in.last(), &m->last));
  FLUX_RETURN_IF_ERROR(take_report(in.report(), &m->report));
  if (in.why().code() >= kCodes) return invalid("leave: status code {}", in.why().code());
  m->why = in.why().code() == 0 ? Status::ok()
                                : Status(static_cast<Code>(in.why().code()), in.why().message());
  return Status::ok();
}

}  // namespace flux
