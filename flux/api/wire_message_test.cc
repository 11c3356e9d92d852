// Control messages: there and back field by field, what is refused and why, the table of roles.
#include "flux/api/wire_message.h"

#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "flux/api/messages.pb.h"
#include "flux/api/verbs.h"
#include "flux/base/random.h"
#include "flux/protocol/ledger.h"

namespace flux {
namespace {

template <typename T>
T round_trip(const T& message) {
  T out;
  const Status status = decode_message(encode_message(message), &out);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return out;
}

BatchId batch(uint32_t block, uint8_t at, uint8_t of) {
  return {{3, 1, 65535, block}, at, of};
}
const std::string kBytes("not\xff UTF-8\0and more", 19);

const AdminCall kCall{0xfedcba9876543210ULL, 12, {0, 5, 65543}, {{7, 9}, {7, 9}, {8, 1}}};
void expect_call(const AdminCall& call) {
  EXPECT_EQ(call.incarnation, kCall.incarnation);
  EXPECT_EQ(call.term, 12U);
  EXPECT_EQ(call.shards, kCall.shards);
  EXPECT_EQ(call.epochs, kCall.epochs);
}

TEST(WireMessage, LoadsAndPassesOfAServer) {
  const ShardToLoad shard{4,
                          "shard-00004.changes",
                          99,
                          ~0ULL,
                          31,
                          32,
                          {{10, "shard-00004", 7, 8, 9, 10}, {11, "changes", 1, 2, 3, 4}}};
  const LoadRequest load{kCall, {"some/" + kBytes, 12, {shard}, 3}};
  const LoadRequest loaded = round_trip(load);
  expect_call(loaded.call);
  EXPECT_EQ(loaded.load.folder, load.load.folder);
  EXPECT_EQ(loaded.load.number, 12U);
  EXPECT_EQ(loaded.load.closed_below, 3U);
  ASSERT_EQ(loaded.load.shards.size(), 1U);
  EXPECT_EQ(loaded.load.shards[0], shard);

  const OpenPassRequest pass = round_trip(OpenPassRequest{kCall, 6, 7});
  expect_call(pass.call);
  EXPECT_EQ(pass.pass, 6U);
  EXPECT_EQ(pass.geometry, 7U);
  const CloseBelowRequest close = round_trip(CloseBelowRequest{kCall, 6});
  expect_call(close.call);
  EXPECT_EQ(close.pass, 6U);
  expect_call(round_trip(CloseJobRequest{kCall}).call);
}

TEST(WireMessage, MarksSavesAndTotalsOfAServer) {
  const MarkedRequest marked = round_trip(MarkedRequest{kCall, {2, 3, 4, 0}, 1000, true});
  expect_call(marked.call);
  EXPECT_EQ(marked.section, (BlockId{2, 3, 4, 0}));
  EXPECT_EQ(marked.blocks, 1000U);
  EXPECT_TRUE(marked.any);
  const std::vector<uint32_t> masks = {0, ~0U, 5};
  EXPECT_EQ(round_trip(MarkedReply{masks}).masks, masks);
  const MarkRequest mark =
      round_trip(MarkRequest{kCall, 2, {batch(1, 0, 1), batch(2, 31, 32)}, Verdict::kLost});
  expect_call(mark.call);
  EXPECT_EQ(mark.ids, (std::vector<BatchId>{batch(1, 0, 1), batch(2, 31, 32)}));
  EXPECT_EQ(mark.geometry, 2U);
  EXPECT_EQ(mark.verdict, Verdict::kLost);
  const VoidMemberRequest gone = round_trip(VoidMemberRequest{kCall, 2, {3, 4, 5, 6}});
  expect_call(gone.call);
  EXPECT_EQ(gone.round, 2U);
  EXPECT_EQ(gone.block, (BlockId{3, 4, 5, 6}));
  const SaveRequest save = round_trip(SaveRequest{kCall, "folder", 8, 7});
  expect_call(save.call);
  EXPECT_EQ(save.folder, "folder");
  EXPECT_EQ(save.number, 8U);
  EXPECT_EQ(save.committed, 7U);
  const SaveReply saved = round_trip(SaveReply{{{1, "a", 2, 3, 4, 5, 6, true, 7, 8}}});
  ASSERT_EQ(saved.shards.size(), 1U);
  EXPECT_EQ(saved.shards[0].shard, 1U);
  EXPECT_EQ(saved.shards[0].name, "a");
  EXPECT_EQ(saved.shards[0].bytes, 2U);
  EXPECT_EQ(saved.shards[0].hash, 3U);
  EXPECT_EQ(saved.shards[0].op, 4U);
  EXPECT_EQ(saved.shards[0].stream_hash, 5U);
  EXPECT_EQ(saved.shards[0].rows, 6U);
  EXPECT_TRUE(saved.shards[0].incremental);
  EXPECT_EQ(saved.shards[0].base_op, 7U);
  EXPECT_EQ(saved.shards[0].base_stream_hash, 8U);
  const TotalsRequest ask = round_trip(TotalsRequest{kCall, true, {{10, 2}, {20, 3}}});
  expect_call(ask.call);
  EXPECT_TRUE(ask.rows);
  ASSERT_EQ(ask.expected.size(), 2U);
  EXPECT_EQ(ask.expected[1].records, 20U);
  EXPECT_EQ(ask.expected[1].repeats, 3U);
  const JobTotals totals{1, {2, 3}, 4, {{5, 6}}, 7, 8, 9, 10, 11.5, 12, 13, 14, 15, 16, 17, 18};
  const JobTotals t = round_trip(totals);
  EXPECT_EQ(t.rows, 1U);
  EXPECT_EQ(t.occurrences, totals.occurrences);
  EXPECT_EQ(t.memory_bytes, 4U);
  EXPECT_EQ(t.dense.at(0).min, 5U);
  EXPECT_EQ(t.dense.at(0).max, 6U);
  EXPECT_EQ(t.dense.size(), 1U);
  EXPECT_EQ(t.expected_seen, 7U);
  EXPECT_EQ(t.lost, 8U);
  EXPECT_EQ(t.doubled, 9U);
  EXPECT_EQ(t.content_hash, 10U);
  EXPECT_EQ(t.cpu_s, 11.5);
  EXPECT_EQ(t.rss_bytes, 12U);
  EXPECT_EQ(t.pulls, 13U);
  EXPECT_EQ(t.pushes, 14U);
  EXPECT_EQ(t.bytes_in, 15U);
  EXPECT_EQ(t.bytes_out, 16U);
  EXPECT_EQ(t.duplicates, 17U);
  EXPECT_EQ(t.refused, 18U);
}

TEST(WireMessage, JoiningACoordinator) {
  const JoinRequest join = round_trip(JoinRequest{
      "worker-1", ~1ULL, 4, "host", 99, {{"shards", "8"}, {"tables.t.dim", kBytes}}, 0, {}});
  EXPECT_EQ(join.name, "worker-1");
  EXPECT_EQ(join.boot, ~1ULL);
  EXPECT_EQ(join.threads, 4U);
  EXPECT_EQ(join.host, "host");
  EXPECT_EQ(join.pid, 99U);
  EXPECT_EQ(join.model.at("tables.t.dim"), kBytes);
  EXPECT_EQ(join.model.size(), 2U);
  EXPECT_EQ(join.incarnation, 0U);
  EXPECT_TRUE(join.held.empty());

  JoinRequest again{"worker-1", 2, 1, "", 0, {}, ~7ULL, {}};
  again.held.push_back({{1, 2, 3, 4}, 5, 0x80000001, false, {}});
  again.held.push_back({{1, 2, 3, 5}, 6, 0, true, {9, {{{1, 2, 3, 5}, 32, 7}}, 3}});
  const JoinRequest back = round_trip(again);
  EXPECT_EQ(back.incarnation, ~7ULL);
  ASSERT_EQ(back.held.size(), 2U);
  EXPECT_EQ(back.held[0].id, again.held[0].id);
  EXPECT_EQ(back.held[0].lane, 5U);
  EXPECT_EQ(back.held[0].applied, 0x80000001);
  EXPECT_FALSE(back.held[0].evaluate);
  EXPECT_EQ(back.held[0].round, SyncRound{});
  EXPECT_EQ(back.held[1].id, again.held[1].id);
  EXPECT_TRUE(back.held[1].evaluate);
  EXPECT_EQ(back.held[1].round, again.held[1].round);

  JoinReply reply{3, {"p", "t", {{"a", "b"}}}, 5, {}, 250, "for a server"};
  reply.map.servers = {"tcp:a:1", "unix:b"};
  reply.map.version = 1ULL << 40;
  reply.map.route.server = {0, 1, 1, 0};
  reply.map.route.epoch = {{1, 1}, {1, 1}, {1, 2}, {1, 1}};
  const JoinReply got = round_trip(reply);
  EXPECT_EQ(got.worker, 3U);
  EXPECT_EQ(got.job, reply.job);
  EXPECT_EQ(got.incarnation, 5U);
  EXPECT_EQ(got.report_every_ms, 250U);
  EXPECT_EQ(got.waits, "for a server");
  EXPECT_EQ(got.map.servers, reply.map.servers);
  EXPECT_EQ(got.map.version, 1ULL << 40);
  EXPECT_EQ(got.map.route.server, reply.map.route.server);
  EXPECT_EQ(got.map.route.epoch, reply.map.route.epoch);

  // All shards under one epoch, and none at all.
  reply.map.route.epoch.assign(4, {8, 9});
  EXPECT_EQ(round_trip(reply.map).route.epoch, reply.map.route.epoch);
  EXPECT_TRUE(round_trip(ClusterMap{}).route.server.empty());

  const ServerJoin server = round_trip(ServerJoin{"server-0", 7, "tcp:h:1", "h", 8});
  EXPECT_EQ(server.name, "server-0");
  EXPECT_EQ(server.boot, 7U);
  EXPECT_EQ(server.address, "tcp:h:1");
  EXPECT_EQ(server.host, "h");
  EXPECT_EQ(server.pid, 8U);
  const ServerJoinReply welcome = round_trip(ServerJoinReply{2, 100});
  EXPECT_EQ(welcome.server, 2U);
  EXPECT_EQ(welcome.report_every_ms, 100U);
  const ServerReport report =
      round_trip(ServerReport{2, 7, {0, 9}, 12345, true, {{3, 40}, {5, 1ULL << 50}}, {4}, 11});
  EXPECT_EQ(report.server, 2U);
  EXPECT_EQ(report.boot, 7U);
  EXPECT_EQ(report.suspects, (std::vector<ServerId>{0, 9}));
  EXPECT_EQ(report.rss_bytes, 12345U);
  EXPECT_TRUE(report.tells_work);
  EXPECT_EQ(report.work, (std::vector<ShardWork>{{3, 40}, {5, 1ULL << 50}}));
  EXPECT_EQ(report.silent, std::vector<ServerId>{4});
  EXPECT_EQ(report.differed, 11U);
  EXPECT_TRUE(round_trip(ServerReportReply{true}).over);
}

HealthPiece some_piece() {
  return {1,
          2,
          3,
          4,
          5,
          0.5,
          6,
          7,
          1.5,
          {{"click", HeadKind::kSquares, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
          {{"h1", 64, 60}}};
}
WorkerReport some_report() {
  LatencyHistogram times;
  times.add(3 * kMillisecond);
  AgeHistogram ages;
  ages.add(16'000);
  return {1,
          2,
          3.5,
          0.75,
          5,
          6,
          7,
          8,
          9.5,
          10,
          {-1, 12},
          "pull from server 1",
          {{1, 2, 3, 4}},
          "seen",
          times,
          {3, 0},
          {{7, 1.5, 0.25}, {8, 2.5, std::nullopt}},
          ages,
          {some_piece()}};
}
void expect_some_piece(const HealthPiece& p) {
  EXPECT_EQ(std::tie(p.lane, p.number, p.phase, p.examples, p.batches, p.norms),
            std::make_tuple(1U, 2U, 3U, 4U, 5U, 7U));
  EXPECT_EQ(std::tie(p.loss, p.loss_squares, p.norm), std::make_tuple(0.5, 6.0, 1.5));
  ASSERT_EQ(p.heads.size(), 1U);
  const HeadHealth& h = p.heads[0];
  EXPECT_EQ(std::tie(h.name, h.kind, h.examples, h.batches),
            std::make_tuple("click", HeadKind::kSquares, 8U, 9U));
  EXPECT_EQ(std::tie(h.loss, h.constant, h.gap_squares, h.label, h.label_squares, h.prediction),
            std::make_tuple(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(std::tie(h.prediction_squares, h.product, h.sure, h.sure_wrong, h.sure_expected),
            std::make_tuple(7, 8, 9, 10, 11));
  ASSERT_EQ(p.layers.size(), 1U);
  EXPECT_EQ(std::tie(p.layers[0].name, p.layers[0].units, p.layers[0].dead),
            std::make_tuple("h1", 64U, 60U));
}
void expect_some_report(const WorkerReport& r) {
  EXPECT_EQ(r.examples, 1U);
  EXPECT_EQ(r.ahead, (std::vector<BlockId>{{1, 2, 3, 4}}));
  EXPECT_EQ(r.metrics, "seen");
  EXPECT_EQ(r.push_times, some_report().push_times);
  EXPECT_EQ(r.push_ages, some_report().push_ages);
  EXPECT_EQ(r.push_ages.max(), 16'000U);
  EXPECT_EQ(r.suspects, (std::vector<ServerId>{3, 0}));
  EXPECT_EQ(r.batches, 2U);
  EXPECT_EQ(r.loss_sum, 3.5);
  EXPECT_EQ(r.train_auc, 0.75);
  ASSERT_EQ(r.phases.size(), 2U);
  EXPECT_EQ(r.phases[0].examples, 7U);
  EXPECT_EQ(r.phases[1].loss_sum, 2.5);
  EXPECT_EQ(r.phases[0].auc, 0.25);
  EXPECT_FALSE(r.phases[1].auc.has_value());
  ASSERT_EQ(r.health.size(), 1U);
  expect_some_piece(r.health[0]);
  EXPECT_EQ(r.duplicates, 5U);
  EXPECT_EQ(r.resends, 6U);
  EXPECT_EQ(r.bytes_sent, 7U);
  EXPECT_EQ(r.bytes_received, 8U);
  EXPECT_EQ(r.cpu_s, 9.5);
  EXPECT_EQ(r.rss_bytes, 10U);
  EXPECT_EQ(r.stage_ns, (std::vector<int64_t>{-1, 12}));
  EXPECT_EQ(r.waits, "pull from server 1");
}

TEST(WireMessage, LeasesAndReports) {
  LeaseRequest lease{1, 2, 3, {batch(4, 5, 6)}, {}, {{batch(8, 1, 2), kBytes}}};
  lease.evaluated.push_back({batch(7, 0, 1), "scored"});
  const LeaseRequest got = round_trip(lease);
  EXPECT_EQ(got.worker, 1U);
  EXPECT_EQ(got.lane, 2U);
  EXPECT_EQ(got.seq, 3U);
  EXPECT_EQ(got.applied, lease.applied);
  ASSERT_EQ(got.evaluated.size(), 1U);
  EXPECT_EQ(got.evaluated[0].id, batch(7, 0, 1));
  EXPECT_EQ(got.evaluated[0].scored, "scored");

  ASSERT_EQ(got.refused.size(), 1U);
  EXPECT_EQ(got.refused[0].id, batch(8, 1, 2));
  EXPECT_EQ(got.refused[0].reason, kBytes);

  LeaseAnswer answer{
      LeaseAnswer::Kind::kEvaluate, {{1, 2, 3, 4}, 32, 5, 6}, ~0ULL, {}, 7, "why", 0.3F, ~1ULL};
  answer.round = {8, {{{1, 2, 3, 4}, 32, ~0U}, {{1, 2, 3, 5}, 1, 0}}, 3};
  const LeaseAnswer a = round_trip(answer);
  EXPECT_EQ(a.kind, answer.kind);
  EXPECT_EQ(a.lease.id, answer.lease.id);
  EXPECT_EQ(a.lease.batches, 32U);
  EXPECT_EQ(a.lease.skip_mask, 5U);
  EXPECT_EQ(a.lease.attempt, 6U);
  EXPECT_EQ(a.geometry, ~0ULL);
  EXPECT_EQ(a.round, answer.round);
  EXPECT_EQ(a.lr_scale, 0.3F);
  EXPECT_EQ(a.examples_before, ~1ULL);
  EXPECT_EQ(round_trip(LeaseAnswer{}).lr_scale, 1);
  EXPECT_EQ(a.wait_ms, 7U);
  EXPECT_EQ(a.reason, "why");

  const ReportRequest report = round_trip(ReportRequest{9, some_report()});
  EXPECT_EQ(report.worker, 9U);
  expect_some_report(report.report);
  const ReportAnswer told = round_trip(ReportAnswer{true, 4});
  EXPECT_TRUE(told.stop);
  EXPECT_EQ(told.map_version, 4U);
  EXPECT_EQ(round_trip(GeometryRequest{~0ULL}).hash, ~0ULL);
  EXPECT_EQ(round_trip(GeometryReply{kBytes}).json, kBytes);
  const LeaveRequest leave =
      round_trip(LeaveRequest{lease, some_report(), Status(Code::kIo, kBytes)});
  EXPECT_EQ(leave.last.applied, lease.applied);
  EXPECT_EQ(leave.last.seq, 3U);
  expect_some_report(leave.report);
  EXPECT_EQ(leave.why.code(), Code::kIo);
  EXPECT_EQ(leave.why.message(), kBytes);
  EXPECT_TRUE(round_trip(LeaveRequest{}).why.is_ok());
  EXPECT_EQ(round_trip(EmptyMessage{}), EmptyMessage{});
}

template <typename T>
void expect_refused(const T& message, Code code, const std::string& says) {
  T out;
  const Status status = decode_message(encode_message(message), &out);
  EXPECT_EQ(status.code(), code) << says;
  EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
}
template <typename T, typename Wire>
void expect_refused_wire(const Wire& message, const std::string& says) {
  T out;
  const Status status = decode_message(message.SerializeAsString(), &out);
  EXPECT_EQ(status.code(), Code::kInvalid) << says;
  EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
}

TEST(WireMessage, ValuesThatNobodySends) {
  for (const AdminCall& call :
       {AdminCall{1, 1, {2, 2}, {{}, {}}}, AdminCall{1, 1, {2, 1}, {{}, {}}}})
    expect_refused(CloseBelowRequest{call, 0}, Code::kInvalid, "at place 1; shards rise");
  expect_refused(CloseBelowRequest{{1, 1, {65544}, {{}}}, 0}, Code::kInvalid, "shard 65544");
  expect_refused(CloseBelowRequest{{1, 1, {1}, {}}, 0}, Code::kInvalid, "0 epochs");
  for (const char* name : {"", "..", ".hidden", "a/b", "/etc/passwd"}) {
    expect_refused(LoadRequest{{}, {"f", 1, {{0, name, 1, 1, 0, 0}}, 0}}, Code::kInvalid,
                   "is called");
    const ShardToLoad chained{0, "good", 1, 1, 0, 0, {{1, name, 1, 1, 1, 1}}};
    expect_refused(LoadRequest{{}, {"f", 1, {chained}, 0}}, Code::kInvalid, "is called");
  }
  const ShardToLoad longest{0, "good", 1, 1, 0, 0, std::vector<FileToLoad>(65)};
  expect_refused(LoadRequest{{}, {"f", 1, {longest}, 0}}, Code::kInvalid, "65 files");
  expect_refused(OpenPassRequest{{}, 2, 0}, Code::kInvalid, "without a geometry");
  expect_refused(MarkedRequest{{}, {}, kBlocksPerSectionMax + 1, false}, Code::kInvalid, "blocks");
  expect_refused(MarkRequest{{}, 1, {}, Verdict::kApplied}, Code::kInvalid, "verdict 0");
  expect_refused(MarkRequest{{}, 1, {}, static_cast<Verdict>(4)}, Code::kInvalid, "verdict 4");
  expect_refused(MarkRequest{{}, 1, {{{}, 3, 3}}, Verdict::kLost}, Code::kInvalid, "batch 3 of");
  expect_refused(MarkRequest{{}, 1, {{{}, 0, 33}}, Verdict::kLost}, Code::kInvalid, "block of 33");
  expect_refused(MarkRequest{{}, 1, {{{}, 0, 0}}, Verdict::kLost}, Code::kInvalid, "block of 0");
  expect_refused(SaveReply{{{65544, "a", 0, 0, 0, 0, 0, false, 0, 0}}}, Code::kInvalid,
                 "shard 65544");
  expect_refused(JoinRequest{"", 1, 1, "", 0, {}, 0, {}}, Code::kInvalid, "a name");
  expect_refused(JoinRequest{"w", 1, 0, "", 0, {}, 0, {}}, Code::kInvalid, "0 threads");
  expect_refused(JoinRequest{"w", 1, 5000, "", 0, {}, 0, {}}, Code::kInvalid, "5000 threads");
  expect_refused(ServerJoin{"s", 1, "", "", 0}, Code::kInvalid, "an address");
  LeaseAnswer lease;
  lease.lease.batches = 33;
  expect_refused(lease, Code::kInvalid, "33 batches");
  lease = {};
  lease.lr_scale = -1;
  expect_refused(lease, Code::kInvalid, "scaled by -1");
  lease = {};
  lease.kind = static_cast<LeaseAnswer::Kind>(4);
  expect_refused(lease, Code::kInvalid, "kind 4");
  expect_refused(ServerReport{1, 1, {1U << 20}, 0}, Code::kInvalid, "suspect 1048576");
  expect_refused(ServerReport{1, 1, {}, 0, true, {{4, 1}, {4, 2}}}, Code::kInvalid,
                 "work of shard 4 after that of shard 4");
  expect_refused(ServerReport{1, 1, {}, 0, false, {}, {1U << 20}}, Code::kInvalid,
                 "suspect 1048576");
  ReportRequest report;
  report.report.suspects = {1U << 20};
  expect_refused(report, Code::kInvalid, "suspect 1048576");
  report.report.suspects.assign(kSuspectsMax + 1, 0);
  expect_refused(report, Code::kInvalid, "65 suspects");
  JoinRequest held{"w", 1, 1, "", 0, {}, 1, {}};
  held.held.resize((1 << 14) + 1);
  expect_refused(held, Code::kInvalid, "holds 16385 blocks");
  held.held.assign(1, {{}, 0, 0, false, {1, {{{}, 33, 0}}, 1}});
  expect_refused(held, Code::kInvalid, "join: a block of 33 batches");
  ClusterMap map{{{0, 1}, {{1, 1}, {1, 1}}}, {"only one"}, 1};
  expect_refused(map, Code::kInvalid, "server 1 of 1");

  wire::Marked phase;
  phase.mutable_section()->set_phase(65536);
  expect_refused_wire<MarkedRequest>(phase, "phase 65536");
  wire::Leave leave;
  leave.mutable_why()->set_code(8);
  expect_refused_wire<LeaveRequest>(leave, "status code 8");
  wire::ClusterMap epochs;
  epochs.add_servers("s");
  epochs.add_server(0);
  expect_refused_wire<ClusterMap>(epochs, "0 epochs");
  epochs.add_epochs();
  epochs.add_epoch_of(1);
  expect_refused_wire<ClusterMap>(epochs, "epoch number 1 of 1");
  epochs.add_epoch_of(0);
  expect_refused_wire<ClusterMap>(epochs, "2 epochs for 1 shards");
}

// Every prefix and many flipped bits of every kind of message end in a Status, never worse.
TEST(WireMessage, DamagedBytesAreRefusedOrReadAsSomethingElse) {
  LeaveRequest leave{{1, 2, 3, {batch(4, 5, 6)}, {}, {}}, some_report(), Status(Code::kIo, "x")};
  leave.last.evaluated.push_back({batch(7, 0, 1), "scored"});
  const std::string good = encode_message(leave);
  Random random(3);
  size_t refused = 0;
  for (size_t n = 0; n < good.size(); ++n) {
    LeaveRequest out;
    refused += decode_message(good.substr(0, n), &out).is_ok() ? 0 : 1;
    std::string bad = good;
    bad[n] = static_cast<char>(random.next());
    LeaveRequest other;
    (void)decode_message(bad, &other);
    JoinReply third;
    (void)decode_message(bad, &third);
  }
  EXPECT_GT(refused, good.size() / 2);
  OpenJob job;
  EXPECT_EQ(decode_message("\xff\xff\xff", &job).code(), Code::kCorrupt);
}

TEST(Verbs, EveryVerbHasOneHomeAndOneRole) {
  std::set<uint16_t> numbers;
  for (const VerbRule& rule : kVerbRules) {
    EXPECT_TRUE(numbers.insert(static_cast<uint16_t>(rule.verb)).second);
    EXPECT_STREQ(verb_name(rule.verb), rule.name);
  }
  EXPECT_EQ(numbers.size(), 27U);
  size_t allowed = 0;
  for (uint32_t verb = 0; verb <= UINT16_MAX; ++verb)
    for (uint8_t role = 0; role < 8; ++role)
      for (const VerbHome home : {VerbHome::kNowhere, VerbHome::kServer, VerbHome::kCoordinator})
        allowed += verb_allowed(home, static_cast<CallerRole>(role), static_cast<uint16_t>(verb));
  EXPECT_EQ(allowed, numbers.size()) << "each verb is one role's, at one place";
  const auto may = [](VerbHome home, CallerRole role, ApiVerb verb) {
    return verb_allowed(home, role, static_cast<uint16_t>(verb));
  };
  EXPECT_TRUE(may(VerbHome::kServer, CallerRole::kWorker, ApiVerb::kPush));
  EXPECT_FALSE(may(VerbHome::kServer, CallerRole::kViewer, ApiVerb::kPull));
  for (const ApiVerb verb : {ApiVerb::kReplicate, ApiVerb::kInstall}) {
    EXPECT_TRUE(may(VerbHome::kServer, CallerRole::kServer, verb));
    EXPECT_FALSE(may(VerbHome::kServer, CallerRole::kWorker, verb));
    EXPECT_FALSE(may(VerbHome::kServer, CallerRole::kCoordinator, verb));
    EXPECT_FALSE(may(VerbHome::kCoordinator, CallerRole::kServer, verb));
  }
  EXPECT_FALSE(may(VerbHome::kServer, CallerRole::kServer, ApiVerb::kPush));
  EXPECT_FALSE(may(VerbHome::kServer, CallerRole::kServer, ApiVerb::kAssign));
  EXPECT_TRUE(may(VerbHome::kServer, CallerRole::kWorker, ApiVerb::kConfirm));
  EXPECT_FALSE(may(VerbHome::kServer, CallerRole::kWorker, ApiVerb::kSave));
  EXPECT_TRUE(may(VerbHome::kServer, CallerRole::kCoordinator, ApiVerb::kSave));
  EXPECT_FALSE(may(VerbHome::kCoordinator, CallerRole::kWorker, ApiVerb::kServerJoin));
  EXPECT_TRUE(may(VerbHome::kCoordinator, CallerRole::kServer, ApiVerb::kServerReport));
}

}  // namespace
}  // namespace flux
