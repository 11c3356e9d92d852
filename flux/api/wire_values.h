// Values of the protocol in and out of generated messages. Private to the encoders of api/: the
// only header that sees generated code. Pure; kInvalid names the field that does not fit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/messages.pb.h"
#include "flux/api/server_admin.h"
#include "flux/base/status.h"

namespace flux {

constexpr uint32_t kWireShardsMax = 65536 + 8;  // sparse and dense
constexpr uint32_t kWireServersMax = 1 << 20;   // ids of servers that ever were
constexpr int kWireIdsMax = 1 << 16;            // batches named by one message

template <typename Message>
Status parse_message(std::string_view bytes, const char* what, Message* out) {
  if (bytes.size() <= INT32_MAX &&
      out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Status::ok();
  return error(Code::kCorrupt, "{}: {} bytes that are not such a message", what, bytes.size());
}

void put_block(const BlockId& id, wire::Block* out);
Status take_block(const wire::Block& in, BlockId* out);
void put_batch(const BatchId& id, wire::Batch* out);
Status take_batch(const wire::Batch& in, BatchId* out);
using WireBatches = google::protobuf::RepeatedPtrField<wire::Batch>;
void put_batches(std::span<const BatchId> ids, WireBatches* out);
Status take_batches(const WireBatches& in, const char* what, std::vector<BatchId>* out);

using WireHealth = google::protobuf::RepeatedPtrField<wire::HealthPiece>;
void put_health(const std::vector<HealthPiece>& pieces, WireHealth* out);
Status take_health(const WireHealth& in, std::vector<HealthPiece>* out);

void put_epoch(const ShardEpoch& epoch, wire::Epoch* out);
ShardEpoch take_epoch(const wire::Epoch& in);
// Many shards share few epochs: those that occur, and an index for each shard (none: all the
// first).
using WireEpochs = google::protobuf::RepeatedPtrField<wire::Epoch>;
using WireNumbers = google::protobuf::RepeatedField<uint32_t>;
void put_epochs(std::span<const ShardEpoch> epochs, WireEpochs* distinct, WireNumbers* index);
Status take_epochs(const WireEpochs& distinct, const WireNumbers& index, size_t shards,
                   std::vector<ShardEpoch>* out);

// Who asks for which shards; `verb` begins the refusal.
void put_call(const AdminCall& call, wire::Call* out);
Status take_call(const char* verb, const wire::Call& in, AdminCall* out);
// Shards that rise and exist.
Status take_rising(const char* verb, const WireNumbers& in, std::vector<ShardId>* out);

// A scale of the learning rate; 1 is not written.
Status take_lr_scale(const char* what, float number, float* out);

void put_job(const JobSpec& job, wire::JobSpec* out);
JobSpec take_job(const wire::JobSpec& in);

}  // namespace flux
