// Messages about places: there and back, short when shards are alike, what is refused and why.
#include <set>

#include <gtest/gtest.h>

#include "flux/api/messages.pb.h"
#include "flux/api/wire_message.h"
#include "flux/base/random.h"

namespace flux {
namespace {

template <typename T>
T round_trip(const T& message) {
  T out;
  const Status status = decode_message(encode_message(message), &out);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return out;
}
template <typename T>
void expect_refused(std::string_view bytes, const std::string& says) {
  T out;
  const Status status = decode_message(bytes, &out);
  EXPECT_EQ(status.code(), Code::kInvalid) << says;
  EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
}

const ShardAssignment kPlace{0, {3, 4}, ReplicaRole::kPrimary, kNoServer, kAnyOp};
Assignments some_places() {
  Assignments places;
  places.shards = {{0, {1, 2}, ReplicaRole::kPrimary, 1, kAnyOp},
                   {3, {1, 3}, ReplicaRole::kPrimary, kNoServer, 0},
                   {4, {1, 2}, ReplicaRole::kBackup, kNoServer, ~0ULL - 1},
                   {65543, {~0ULL, ~0ULL}, ReplicaRole::kNone, (1U << 20) - 1, 5}};
  places.servers = {"tcp:a:1", "", "unix:c"};
  return places;
}
std::vector<ShardState> some_states(uint64_t seed) {
  Random random(seed);
  std::vector<ShardState> states;
  for (ShardId shard = 0; shard < 40; ++shard) {
    if (random.below(3) == 0) continue;
    states.push_back({shard,
                      {random.below(3), random.below(5)},
                      static_cast<ReplicaRole>(random.below(4)),
                      random.below(2) == 1,
                      random.below(2) == 1,
                      random.next(),
                      random.next(),
                      random.next(),
                      random.below(4) == 0 ? kNoServer : static_cast<ServerId>(random.below(9))});
  }
  return states;
}

TEST(WirePlaces, JobsAreOpenedWithTheirPlaces) {
  const OpenJob open{"a job", {"p", "name: x\n", {{"a", "b"}}}, ~0ULL - 5, 7, 2, some_places(),
                     ~0ULL};
  const OpenJob got = round_trip(open);
  EXPECT_EQ(got.name, open.name);
  EXPECT_EQ(got.job, open.job);
  EXPECT_EQ(got.incarnation, open.incarnation);
  EXPECT_EQ(got.term, 7U);
  EXPECT_EQ(got.self, 2U);
  EXPECT_EQ(got.boot, ~0ULL);
  EXPECT_EQ(got.places.shards, open.places.shards);
  EXPECT_EQ(got.places.servers, open.places.servers);
  EXPECT_TRUE(round_trip(OpenJob{"x", {}, 1, 0, 0, {}}).places.shards.empty());
}

TEST(WirePlaces, AssignSealCopyHoldings) {
  const AdminCall call{5, 6, {1, 2}, {{1, 1}, {1, 2}}};
  const AssignRequest assign = round_trip(AssignRequest{{5, 6, {}, {}}, some_places()});
  EXPECT_EQ(assign.call.incarnation, 5U);
  EXPECT_EQ(assign.call.term, 6U);
  EXPECT_EQ(assign.places.shards, some_places().shards);
  EXPECT_EQ(assign.places.servers, some_places().servers);
  EXPECT_EQ(round_trip(SealRequest{call}).call.epochs, call.epochs);
  const CopyRequest copy = round_trip(CopyRequest{call, 9, "tcp:x:1"});
  EXPECT_EQ(copy.call.shards, call.shards);
  EXPECT_EQ(copy.target, 9U);
  EXPECT_EQ(copy.address, "tcp:x:1");
  const HoldingsRequest ask = round_trip(HoldingsRequest{"job", 3});
  EXPECT_EQ(ask.name, "job");
  EXPECT_EQ(ask.term, 3U);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Holdings holdings{
        seed, seed + 1, seed == 0 ? kNoServer : 4U, some_states(seed), {{3, ~0ULL}, {4, 5}}, 3};
    const Holdings got = round_trip(holdings);
    EXPECT_EQ(got.incarnation, seed);
    EXPECT_EQ(got.term, seed + 1);
    EXPECT_EQ(got.self, holdings.self);
    EXPECT_EQ(got.shards, holdings.shards);
    EXPECT_EQ(got.passes, holdings.passes);
    EXPECT_EQ(got.closed_below, 3U);
    EXPECT_EQ(round_trip(StatesReply{holdings.shards}).shards, holdings.shards);
  }
  EXPECT_EQ(round_trip(Holdings{}).self, kNoServer);
  EXPECT_TRUE(round_trip(StatesReply{}).shards.empty());
}

TEST(WirePlaces, ManyShardsThatAreAlikeAreShort) {
  AssignRequest request;
  for (ShardId shard = 0; shard < 65536; ++shard) {
    request.places.shards.push_back(kPlace);
    request.places.shards.back().shard = shard;
  }
  EXPECT_LT(encode_message(request).size(), 65536U * 3 + 64) << "only their numbers";
  EXPECT_EQ(round_trip(request).places.shards, request.places.shards);
  // Each under an epoch of its own: nothing is searched from the beginning.
  for (ShardId shard = 0; shard < 65536; ++shard) request.places.shards[shard].epoch.n = shard;
  EXPECT_EQ(round_trip(request).places.shards, request.places.shards);
}

TEST(WirePlaces, ValuesThatNobodySends) {
  expect_refused<OpenJob>(encode_message(OpenJob{"", {}, 1, 0, 0, {}}),
                          "a name and an incarnation");
  expect_refused<OpenJob>(encode_message(OpenJob{"x", {}, 0, 0, 0, {}}),
                          "a name and an incarnation");
  expect_refused<OpenJob>(encode_message(OpenJob{"x", {}, 1, 0, kNoServer, {}}),
                          "server 4294967295");
  expect_refused<HoldingsRequest>(encode_message(HoldingsRequest{"", 1}), "a name");
  expect_refused<CopyRequest>(encode_message(CopyRequest{{}, 1, ""}), "an address");
  expect_refused<CopyRequest>(encode_message(CopyRequest{{}, kNoServer, "x"}), "4294967295");
  AssignRequest twice{{}, {{kPlace, kPlace}, {}}};
  expect_refused<AssignRequest>(encode_message(twice), "shard 0 at place 1");
  AssignRequest far{{}, {{{65544, {}, ReplicaRole::kNone, kNoServer, 0}}, {}}};
  expect_refused<AssignRequest>(encode_message(far), "shard 65544");
  AssignRequest nobody{{}, {{{0, {}, ReplicaRole::kPrimary, 1U << 20, 0}}, {}}};
  expect_refused<AssignRequest>(encode_message(nobody), "server 1048576");

  wire::Assign assign;
  wire::Assignments* places = assign.mutable_places();
  places->add_shards(1);
  places->add_shards(2);
  expect_refused<AssignRequest>(assign.SerializeAsString(), "0 epochs");
  places->add_epochs();
  expect_refused<AssignRequest>(assign.SerializeAsString(), "0 roles for 2 shards");
  places->add_roles(4);
  places->add_backups(0);
  expect_refused<AssignRequest>(assign.SerializeAsString(), "role 4");
  places->set_roles(0, 3);
  expect_refused<AssignRequest>(assign.SerializeAsString(), "0 log heads for 2 shards");
  for (int i = 0; i < 3; ++i) places->add_at_ops(1);
  expect_refused<AssignRequest>(assign.SerializeAsString(), "3 log heads for 2 shards");
  wire::States states;
  states.add_shards(1);
  states.add_epochs();
  states.add_roles(1);
  states.add_backups(0);
  expect_refused<StatesReply>(states.SerializeAsString(), "0 flags");
  states.add_flags(3);
  expect_refused<StatesReply>(states.SerializeAsString(), "0 log heads");
  states.add_ops(1);
  expect_refused<StatesReply>(states.SerializeAsString(), "0 stream hashes");
  states.add_hashes(1);
  expect_refused<StatesReply>(states.SerializeAsString(), "0 replicated heads");
  states.add_replicated(1);
  StatesReply good;
  ASSERT_TRUE(decode_message(states.SerializeAsString(), &good).is_ok());
  EXPECT_TRUE(good.shards[0].sealed && good.shards[0].complete);
  // Of nothing there is no column either.
  wire::States empty;
  empty.add_roles(1);
  expect_refused<StatesReply>(empty.SerializeAsString(), "1 roles for 0 shards");
}

TEST(WirePlaces, DamagedBytesAreRefusedOrReadAsSomethingElse) {
  const std::string good =
      encode_message(OpenJob{"a job", {"p", "t", {{"a", "b"}}}, 9, 7, 2, some_places()});
  Random random(4);
  size_t refused = 0;
  for (size_t n = 0; n < good.size(); ++n) {
    OpenJob out;
    refused += decode_message(good.substr(0, n), &out).is_ok() ? 0 : 1;
    std::string bad = good;
    bad[n] = static_cast<char>(random.next());
    AssignRequest assign;
    (void)decode_message(bad, &out);
    (void)decode_message(bad, &assign);
  }
  EXPECT_GT(refused, good.size() / 2);
}

}  // namespace
}  // namespace flux
