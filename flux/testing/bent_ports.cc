#include "flux/testing/bent_ports.h"

#include <string>

#include "flux/checkpoint/shard_file.h"

namespace flux {
namespace {

// The same shard with an empty ledger, as ShardReplica::encode() would write it.
ShardReplica without_ledger(const ShardReplica& replica, uint32_t passes) {
  ByteWriter out;
  out.put(replica.shard());
  out.put(replica.incarnation());
  out.put(replica.epoch().term);
  out.put(replica.epoch().n);
  out.put(replica.op());
  out.put(replica.stream_hash());
  std::vector<std::pair<uint32_t, uint64_t>> open;
  for (uint32_t pass = 0; pass < passes; ++pass)
    if (replica.geometry(pass) != 0) open.emplace_back(pass, replica.geometry(pass));
  out.put(static_cast<uint32_t>(open.size()));
  for (const auto& [pass, geometry] : open) {
    out.put(pass);
    out.put(geometry);
  }
  Ledger().encode(&out);
  const std::string bytes = out.take();
  ByteReader in(bytes);
  auto made = ShardReplica::decode(&in);
  return made.is_ok() ? std::move(made).value() : replica;
}

}  // namespace

void BentPort::push(const PushRequest& request, std::function<void(const PushReply&)> done) {
  if (bug_ == ClusterBug::kForgedAnswer && node_->world()->random().chance(0.05)) {
    PushReply reply;
    for (const ShardId shard : request.shards)
      reply.answers.push_back({shard, Answer::kApplied, 1, {}, {}});
    node_->post(0, [done = std::move(done), reply] { done(reply); });
    return;
  }
  if (bug_ == ClusterBug::kStaleAnswer) return push_remembering(request, done);
  inner_->push(request, std::move(done));
}

// A shard that once said it has a batch is not asked again, whoever owns it now.
void BentPort::push_remembering(const PushRequest& request,
                                const std::function<void(const PushReply&)>& done) {
  const std::vector<BatchId> ids = request.claim.ids;
  std::vector<ShardEpoch> epochs(request.epochs.begin(), request.epochs.end());
  bool known = true;
  for (size_t i = 0; i < request.shards.size(); ++i)
    for (const BatchId& id : ids) {
      const auto at = answers_->earned.find({request.shards[i], id});
      known = known && at != answers_->earned.end() && at->second != epochs[i];
    }
  if (known) {
    PushReply reply;
    for (const ShardId shard : request.shards)
      reply.answers.push_back({shard, Answer::kDuplicate, 1, {}, {}});
    node_->post(0, [done, reply] { done(reply); });
    return;
  }
  inner_->push(request, [answers = answers_, ids, epochs, done](const PushReply& reply) {
    for (size_t i = 0; i < reply.answers.size() && i < epochs.size(); ++i)
      if (reply.answers[i].answer == Answer::kApplied)
        for (const BatchId& id : ids) answers->earned[{reply.answers[i].shard, id}] = epochs[i];
    done(reply);
  });
}

void BentReplica::install(const InstallRequest& request, std::function<void(Status)> done) {
  if (bug_ != ClusterBug::kLedgerNotCopied || request.parts != 1)
    return inner_->install(request, std::move(done));
  const std::string_view bytes{reinterpret_cast<const char*>(request.bytes.data()),
                               request.bytes.size()};
  auto image = decode_shard("install", bytes);
  if (!image.is_ok()) return inner_->install(request, std::move(done));
  image.value().replica = without_ledger(image.value().replica, passes_);
  const auto bent = std::make_shared<const std::string>(encode_shard(image.value()));
  InstallRequest asked = request;
  asked.bytes = std::as_bytes(std::span(bent->data(), bent->size()));
  inner_->install(asked, [bent, done = std::move(done)](const Status& status) { done(status); });
}

}  // namespace flux
