#include "flux/testing/sim_data.h"

#include <algorithm>
#include <limits>

#include "flux/base/hash.h"

namespace flux {
namespace {

constexpr uint64_t kRecordBytes = 10;
constexpr uint64_t kSharedKeys = 5;
constexpr std::string_view kName = "sim/pass-";

// What all readers of a data set share.
struct SimContent {
  SimFlaws flaws;
  std::function<void()> die;
};

float dense_value(uint64_t record, uint32_t pass, bool finite) {
  if (finite) return hash_uniform(record, pass, 0) - 0.5F;
  const float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity};
  return values[hash_pair(record, pass) % 3];
}

class SimReader final : public BlockReader {
 public:
  SimReader(const Geometry* geometry, std::shared_ptr<const SimContent> content, uint32_t pass,
            uint32_t block, uint32_t epoch)
      : geometry_(geometry),
        content_(std::move(content)),
        pass_(pass),
        block_(block),
        order_(block_order(*geometry, block, epoch)) {}
  Status read_batch(uint32_t batch, Batch* out) const override {
    *out = Batch{};
    out->size = geometry_->batch_records(block_, batch);
    out->slots = kSimSlots;
    out->dense = kSimDense;
    for (uint32_t i = 0; i < out->size; ++i) {
      const uint64_t record =
          geometry_->blocks[block_].first_record + order_[batch * geometry_->batch_size + i];
      if (content_->flaws.left_out && content_->flaws.has(record)) continue;
      if (content_->flaws.deadly.contains(record)) {
        if (content_->die) content_->die();
        return error(Code::kUnavailable, "the process died of record {}", record);
      }
      out->labels.push_back(hash_pair(record, pass_) % 2 == 0 ? 1.0F : 0.0F);
      out->dense_values.push_back(
          dense_value(record, pass_, !content_->flaws.not_finite.contains(record)));
      out->keys.push_back(sim_own_key(pass_, record));
      out->keys.push_back(sim_shared_key(pass_, record));
    }
    out->size = static_cast<uint32_t>(out->labels.size());
    return Status::ok();
  }

 private:
  const Geometry* geometry_;
  std::shared_ptr<const SimContent> content_;
  uint32_t pass_;
  uint32_t block_;
  std::vector<uint32_t> order_;
};

class SimDataset final : public Dataset {
 public:
  SimDataset(Geometry geometry, uint32_t pass, SimContent content)
      : geometry_(std::move(geometry)),
        content_(std::make_shared<const SimContent>(std::move(content))),
        pass_(pass) {}
  const Geometry& geometry() const override { return geometry_; }
  const Features& features() const override { return features_; }
  Result<std::unique_ptr<BlockReader>> open_block(uint32_t block, uint32_t epoch) const override {
    if (block >= geometry_.blocks.size())
      return invalid("block {} of {}", block, geometry_.blocks.size());
    return std::unique_ptr<BlockReader>(
        std::make_unique<SimReader>(&geometry_, content_, pass_, block, epoch));
  }

 private:
  const Features features_{kSimSlots, kSimDense, {}, false, {"label"}, false};
  Geometry geometry_;
  std::shared_ptr<const SimContent> content_;
  uint32_t pass_;
};

}  // namespace

Geometry sim_geometry(const SimPass& pass) {
  Geometry g;
  g.format = "sim";
  g.batch_size = pass.batch_size;
  g.shuffle_seed = pass.shuffle_seed;
  uint64_t at = 0;
  for (uint32_t b = 0; b < pass.blocks; ++b) {
    const uint32_t records = b + 1 == pass.blocks ? pass.last_records : pass.block_records;
    g.blocks.push_back({0, at * kRecordBytes, (at + records) * kRecordBytes, at, records});
    at += records;
  }
  g.files = {{std::string(kName) + std::to_string(pass.pass), at * kRecordBytes, at,
              Packing::kPlain, 0, 0}};
  return g;
}

Result<uint32_t> sim_pass_of(const Geometry& geometry) {
  if (geometry.files.size() != 1 || !geometry.files[0].path.starts_with(kName))
    return invalid("not a simulated data set");
  return static_cast<uint32_t>(std::stoul(geometry.files[0].path.substr(kName.size())));
}

uint64_t sim_own_key(uint32_t pass, uint64_t record) {
  return (uint64_t{pass} + 1) << 32 | record;
}

uint64_t sim_shared_key(uint32_t pass, uint64_t record) {
  return 1ULL << 60 | hash_pair(record, pass) % kSharedKeys;
}

Result<std::unique_ptr<Dataset>> open_sim_dataset(const Geometry& geometry, SimFlaws flaws,
                                                  std::function<void()> die) {
  FLUX_ASSIGN_OR_RETURN(const uint32_t pass, sim_pass_of(geometry));
  return std::unique_ptr<Dataset>(
      std::make_unique<SimDataset>(geometry, pass, SimContent{std::move(flaws), std::move(die)}));
}

}  // namespace flux
