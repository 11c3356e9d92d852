// Messages between coordinator and servers: what ServerAdminPort and ServerRegistry say.
#include "flux/api/wire_message.h"
#include "flux/api/wire_values.h"
#include "flux/protocol/ledger.h"

namespace flux {

std::string encode_message(const EmptyMessage&) {
  return {};
}
Status decode_message(std::string_view bytes, EmptyMessage*) {
  wire::Empty in;
  return parse_message(bytes, "an empty message", &in);
}

namespace {

constexpr int kWireChainMax = 64;

void put_file(const FileToLoad& file, wire::FileToLoad* out) {
  out->set_number(file.number);
  out->set_name(file.name);
  out->set_bytes(file.bytes);
  out->set_hash(file.hash);
  out->set_op(file.op);
  out->set_stream_hash(file.stream_hash);
}
// A name is a file inside a checkpoint's folder, nothing else.
Status check_file(uint64_t number, uint32_t shard, const std::string& name) {
  if (number == 0 && name.empty() && shard < kWireShardsMax) return Status::ok();  // no file
  if (shard >= kWireShardsMax || name.empty() || name[0] == '.' ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
    return invalid("load: shard {} from a file that is called '{}'", shard, name.substr(0, 64));
  return Status::ok();
}

}  // namespace

std::string encode_message(const LoadRequest& m) {
  wire::Load out;
  put_call(m.call, out.mutable_call());
  out.set_folder(m.load.folder);
  out.set_number(m.load.number);
  for (const ShardToLoad& shard : m.load.shards) {
    wire::ShardToLoad* s = out.add_shards();
    s->set_shard(shard.shard);
    s->set_name(shard.name);
    s->set_bytes(shard.bytes);
    s->set_hash(shard.hash);
    s->set_op(shard.op);
    s->set_stream_hash(shard.stream_hash);
    for (const FileToLoad& file : shard.chain) put_file(file, s->add_chain());
  }
  out.set_closed_below(m.load.closed_below);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, LoadRequest* m) {
  wire::Load in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "load", &in));
  *m = {{}, {in.folder(), in.number(), {}, in.closed_below()}};
  FLUX_RETURN_IF_ERROR(take_call("load", in.call(), &m->call));
  for (const wire::ShardToLoad& s : in.shards()) {
    FLUX_RETURN_IF_ERROR(check_file(in.number(), s.shard(), s.name()));
    ShardToLoad shard{s.shard(), s.name(), s.bytes(), s.hash(), s.op(), s.stream_hash()};
    if (s.chain_size() > kWireChainMax)
      return invalid("load: shard {} from {} files, at most {} are possible", s.shard(),
                     s.chain_size(), kWireChainMax);
    for (const wire::FileToLoad& f : s.chain()) {
      FLUX_RETURN_IF_ERROR(check_file(f.number(), s.shard(), f.name()));
      shard.chain.push_back({f.number(), f.name(), f.bytes(), f.hash(), f.op(), f.stream_hash()});
    }
    m->load.shards.push_back(std::move(shard));
  }
  return Status::ok();
}

std::string encode_message(const OpenPassRequest& m) {
  wire::OpenPass out;
  put_call(m.call, out.mutable_call());
  out.set_pass(m.pass);
  out.set_geometry(m.geometry);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, OpenPassRequest* m) {
  wire::OpenPass in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "open_pass", &in));
  *m = {{}, in.pass(), in.geometry()};
  FLUX_RETURN_IF_ERROR(take_call("open_pass", in.call(), &m->call));
  if (m->geometry == 0) return invalid("open_pass: pass {} without a geometry", m->pass);
  return Status::ok();
}

std::string encode_message(const CloseBelowRequest& m) {
  wire::CloseBelow out;
  put_call(m.call, out.mutable_call());
  out.set_pass(m.pass);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, CloseBelowRequest* m) {
  wire::CloseBelow in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "close_below", &in));
  m->pass = in.pass();
  return take_call("close_below", in.call(), &m->call);
}

std::string encode_message(const MarkedRequest& m) {
  wire::Marked out;
  put_call(m.call, out.mutable_call());
  put_block(m.section, out.mutable_section());
  out.set_blocks(m.blocks);
  out.set_any(m.any);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, MarkedRequest* m) {
  wire::Marked in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "marked", &in));
  *m = {{}, {}, in.blocks(), in.any()};
  FLUX_RETURN_IF_ERROR(take_call("marked", in.call(), &m->call));
  FLUX_RETURN_IF_ERROR(take_block(in.section(), &m->section));
  if (m->blocks > kBlocksPerSectionMax)
    return invalid("marked: {} blocks, a section has at most {}", m->blocks, kBlocksPerSectionMax);
  return Status::ok();
}

std::string encode_message(const MarkedReply& m) {
  wire::MarkedReply out;
  out.mutable_masks()->Assign(m.masks.begin(), m.masks.end());
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, MarkedReply* m) {
  wire::MarkedReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of marked", &in));
  m->masks.assign(in.masks().begin(), in.masks().end());
  return Status::ok();
}

std::string encode_message(const MarkRequest& m) {
  wire::Mark out;
  put_call(m.call, out.mutable_call());
  out.set_geometry(m.geometry);
  put_batches(m.ids, out.mutable_ids());
  out.set_verdict(static_cast<uint32_t>(m.verdict));
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, MarkRequest* m) {
  wire::Mark in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "mark", &in));
  if (in.verdict() == 0 || in.verdict() >= kVerdicts)
    return invalid("mark: verdict {}; skipped, dropped and lost are 1 to 3", in.verdict());
  *m = {{}, in.geometry(), {}, static_cast<Verdict>(in.verdict())};
  FLUX_RETURN_IF_ERROR(take_call("mark", in.call(), &m->call));
  return take_batches(in.ids(), "mark", &m->ids);
}

std::string encode_message(const VoidMemberRequest& m) {
  wire::VoidMember out;
  put_call(m.call, out.mutable_call());
  out.set_round(m.round);
  put_block(m.block, out.mutable_block());
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, VoidMemberRequest* m) {
  wire::VoidMember in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "void_member", &in));
  *m = {{}, in.round(), {}};
  FLUX_RETURN_IF_ERROR(take_call("void_member", in.call(), &m->call));
  return take_block(in.block(), &m->block);
}

std::string encode_message(const SaveRequest& m) {
  wire::Save out;
  put_call(m.call, out.mutable_call());
  out.set_folder(m.folder);
  out.set_number(m.number);
  out.set_committed(m.committed);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, SaveRequest* m) {
  wire::Save in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "save", &in));
  *m = {{}, in.folder(), in.number(), in.committed()};
  return take_call("save", in.call(), &m->call);
}

std::string encode_message(const SaveReply& m) {
  wire::SaveReply out;
  for (const SavedShard& shard : m.shards) {
    wire::SavedShard* s = out.add_shards();
    s->set_shard(shard.shard);
    s->set_name(shard.name);
    s->set_bytes(shard.bytes);
    s->set_hash(shard.hash);
    s->set_op(shard.op);
    s->set_stream_hash(shard.stream_hash);
    s->set_rows(shard.rows);
    s->set_incremental(shard.incremental);
    s->set_base_op(shard.base_op);
    s->set_base_stream_hash(shard.base_stream_hash);
  }
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, SaveReply* m) {
  wire::SaveReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of save", &in));
  m->shards.clear();
  for (const wire::SavedShard& s : in.shards()) {
    if (s.shard() >= kWireShardsMax)
      return invalid("answer of save: shard {}, ids are below {}", s.shard(), kWireShardsMax);
    m->shards.push_back({s.shard(), s.name(), s.bytes(), s.hash(), s.op(), s.stream_hash(),
                         s.rows(), s.incremental(), s.base_op(), s.base_stream_hash()});
  }
  return Status::ok();
}

std::string encode_message(const TotalsRequest& m) {
  wire::Totals out;
  put_call(m.call, out.mutable_call());
  out.set_rows(m.rows);
  for (const ExpectedCount& count : m.expected) {
    wire::ExpectedCount* c = out.add_expected();
    c->set_records(count.records);
    c->set_repeats(count.repeats);
  }
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, TotalsRequest* m) {
  wire::Totals in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "totals", &in));
  *m = {{}, in.rows(), {}};
  FLUX_RETURN_IF_ERROR(take_call("totals", in.call(), &m->call));
  for (const wire::ExpectedCount& c : in.expected())
    m->expected.push_back({c.records(), c.repeats()});
  return Status::ok();
}

std::string encode_message(const JobTotals& m) {
  wire::TotalsReply out;
  out.set_rows(m.rows);
  out.mutable_occurrences()->Assign(m.occurrences.begin(), m.occurrences.end());
  out.set_memory_bytes(m.memory_bytes);
  for (const DenseExamples& phase : m.dense) {
    out.add_dense_min(phase.min);
    out.add_dense_max(phase.max);
  }
  out.set_expected_seen(m.expected_seen);
  out.set_lost(m.lost);
  out.set_doubled(m.doubled);
  out.set_content_hash(m.content_hash);
  out.set_cpu_s(m.cpu_s);
  out.set_rss_bytes(m.rss_bytes);
  out.set_pulls(m.pulls);
  out.set_pushes(m.pushes);
  out.set_bytes_in(m.bytes_in);
  out.set_bytes_out(m.bytes_out);
  out.set_duplicates(m.duplicates);
  out.set_refused(m.refused);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, JobTotals* m) {
  wire::TotalsReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of totals", &in));
  *m = {in.rows(),          {in.occurrences().begin(), in.occurrences().end()},
        in.memory_bytes(),  {},
        in.expected_seen(), in.lost(),
        in.doubled(),       in.content_hash(),
        in.cpu_s(),         in.rss_bytes(),
        in.pulls(),         in.pushes(),
        in.bytes_in(),      in.bytes_out(),
        in.duplicates(),    in.refused()};
  if (in.dense_min_size() != in.dense_max_size())
    return invalid("answer of totals: {} and {} counts of examples", in.dense_min_size(),
                   in.dense_max_size());
  for (int p = 0; p < in.dense_min_size(); ++p)
    m->dense.push_back({in.dense_min(p), in.dense_max(p)});
  return Status::ok();
}

std::string encode_message(const CloseJobRequest& m) {
  wire::CloseJob out;
  put_call(m.call, out.mutable_call());
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, CloseJobRequest* m) {
  wire::CloseJob in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "close_job", &in));
  return take_call("close_job", in.call(), &m->call);
}

std::string encode_message(const ServerJoin& m) {
  wire::ServerJoin out;
  out.set_name(m.name);
  out.set_boot(m.boot);
  out.set_address(m.address);
  out.set_host(m.host);
  out.set_pid(m.pid);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, ServerJoin* m) {
  wire::ServerJoin in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "server_join", &in));
  *m = {in.name(), in.boot(), in.address(), in.host(), in.pid()};
  if (m->name.empty() || m->address.empty())
    return invalid("server_join: a server has a name and an address");
  return Status::ok();
}

std::string encode_message(const ServerJoinReply& m) {
  wire::ServerJoinReply out;
  out.set_server(m.server);
  out.set_report_every_ms(m.report_every_ms);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, ServerJoinReply* m) {
  wire::ServerJoinReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of server_join", &in));
  *m = {in.server(), in.report_every_ms()};
  return Status::ok();
}

std::string encode_message(const ServerReport& m) {
  wire::ServerReport out;
  out.set_server(m.server);
  out.set_boot(m.boot);
  out.mutable_suspects()->Assign(m.suspects.begin(), m.suspects.end());
  out.set_rss_bytes(m.rss_bytes);
  out.set_tells_work(m.tells_work);
  for (const ShardWork& work : m.work) {
    out.add_work_shards(work.shard);
    out.add_work_keys(work.keys);
  }
  out.mutable_silent()->Assign(m.silent.begin(), m.silent.end());
  out.set_differed(m.differed);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, ServerReport* m) {
  wire::ServerReport in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "server_report", &in));
  *m = {in.server(),     in.boot(), {in.suspects().begin(), in.suspects().end()}, in.rss_bytes(),
        in.tells_work(), {},        {in.silent().begin(), in.silent().end()},     in.differed()};
  for (const auto* list : {&m->suspects, &m->silent})
    for (const ServerId suspect : *list)
      if (suspect >= kWireServersMax)
        return invalid("server_report: suspect {}, ids are below {}", suspect, kWireServersMax);
  if (in.work_shards_size() != in.work_keys_size())
    return invalid("server_report: work of {} shards, {} numbers of keys", in.work_shards_size(),
                   in.work_keys_size());
  for (int i = 0; i < in.work_shards_size(); ++i) {
    m->work.push_back({in.work_shards(i), in.work_keys(i)});
    if (i > 0 && in.work_shards(i) <= in.work_shards(i - 1))
      return invalid("server_report: work of shard {} after that of shard {}", in.work_shards(i),
                     in.work_shards(i - 1));
  }
  return Status::ok();
}

std::string encode_message(const ServerReportReply& m) {
  wire::ServerReportReply out;
  out.set_over(m.over);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, ServerReportReply* m) {
  wire::ServerReportReply in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "answer of server_report", &in));
  m->over = in.over();
  return Status::ok();
}

}  // namespace flux
