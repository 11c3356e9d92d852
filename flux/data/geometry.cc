#include "flux/data/geometry.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "flux/base/check.h"
#include "flux/base/hash.h"
#include "flux/base/random.h"

namespace flux {
namespace {

using nlohmann::json;
constexpr int kVersion = 1;

json to_body(const Geometry& g) {
  json files = json::array();
  for (const DataFile& f : g.files)
    files.push_back({{"path", f.path}, {"bytes", f.bytes}, {"records", f.records}});
  json blocks = json::array();
  for (const DataBlock& b : g.blocks)
    blocks.push_back(json::array({b.file, b.begin, b.end, b.first_record, b.records}));
  return {{"format", g.format},       {"version", kVersion},
          {"batch_size", g.batch_size}, {"shuffle_seed", g.shuffle_seed},
          {"files", files},           {"blocks", blocks}};
}

// What from_json() refuses: a cut that no scan makes.
Status check(const Geometry& g) {
  const auto bad = [](const char* what) { return error(Code::kCorrupt, "geometry: {}", what); };
  if (g.batch_size == 0) return bad("batch_size is 0");
  uint64_t records = 0;
  for (const DataBlock& b : g.blocks) {
    if (b.file >= g.files.size()) return bad("a block of no file");
    if (b.records == 0 || b.begin >= b.end) return bad("an empty block");
    if (b.records > static_cast<uint64_t>(g.batch_size) * kBlockBatches)
      return bad("a block of too many batches");
    if (b.first_record != records) return bad("records are not numbered in order");
    records += b.records;
  }
  return Status::ok();
}

}  // namespace

uint64_t Geometry::records() const {
  return std::accumulate(blocks.begin(), blocks.end(), uint64_t{0},
                         [](uint64_t sum, const DataBlock& b) { return sum + b.records; });
}

uint32_t Geometry::batches_in(uint32_t block) const {
  return (blocks[block].records + batch_size - 1) / batch_size;
}

uint64_t Geometry::batches() const {
  uint64_t sum = 0;
  for (uint32_t b = 0; b < blocks.size(); ++b) sum += batches_in(b);
  return sum;
}

uint32_t Geometry::batch_records(uint32_t block, uint32_t batch) const {
  FLUX_CHECK(batch < batches_in(block), "batch {} of block {}", batch, block);
  return std::min(batch_size, blocks[block].records - batch * batch_size);
}

uint64_t Geometry::hash() const {
  uint64_t h = hash_bytes(format, batch_size);
  h = hash_pair(h, shuffle_seed);
  for (const DataFile& f : files) h = hash_pair(hash_bytes(f.path, h), hash_pair(f.bytes, f.records));
  for (const DataBlock& b : blocks) {
    const uint64_t fields[] = {b.file, b.begin, b.end, b.first_record, b.records};
    h = hash_bytes(fields, sizeof fields, h);
  }
  return h == 0 ? 1 : h;  // 0 means "no geometry" to a shard
}

std::string Geometry::to_json() const {
  json body = to_body(*this);
  body["hash"] = fmt::format("{:016x}", hash());
  return body.dump() + "\n";
}

Result<Geometry> Geometry::from_json(std::string_view text) {
  Geometry g;
  try {
    const json body = json::parse(text);
    if (body.at("version") != kVersion)
      return error(Code::kCorrupt, "geometry: version {}, this flux reads version {}",
                   body.at("version").dump(), kVersion);
    g.format = body.at("format").get<std::string>();
    g.batch_size = body.at("batch_size").get<uint32_t>();
    g.shuffle_seed = body.at("shuffle_seed").get<uint64_t>();
    for (const json& f : body.at("files")) {
      DataFile file{f.at("path").get<std::string>(), f.at("bytes").get<uint64_t>(),
                    f.at("records").get<uint64_t>(), false, nullptr};
      file.gzip = file.path.ends_with(".gz");
      g.files.push_back(std::move(file));
    }
    for (const json& b : body.at("blocks"))
      g.blocks.push_back({b.at(0).get<uint32_t>(), b.at(1).get<uint64_t>(),
                          b.at(2).get<uint64_t>(), b.at(3).get<uint64_t>(),
                          b.at(4).get<uint32_t>()});
    if (body.at("hash").get<std::string>() != fmt::format("{:016x}", g.hash()))
      return error(Code::kCorrupt, "geometry: its hash does not match");
  } catch (const json::exception& failure) {  // the JSON library's exceptions stay here
    return error(Code::kCorrupt, "geometry: not readable ({})", failure.what());
  }
  FLUX_RETURN_IF_ERROR(check(g));
  return g;
}

std::vector<std::string> geometry_differences(const Geometry& before, const Geometry& now) {
  std::vector<std::string> out;
  if (before.format != now.format)
    out.push_back(fmt::format("format {}, was {}", now.format, before.format));
  if (before.batch_size != now.batch_size)
    out.push_back(fmt::format("batch size {}, was {}", now.batch_size, before.batch_size));
  if (before.shuffle_seed != now.shuffle_seed)
    out.push_back(fmt::format("shuffle seed {} (0: off), was {}", now.shuffle_seed,
                              before.shuffle_seed));
  const size_t n = std::max(before.files.size(), now.files.size());
  for (size_t i = 0; i < n; ++i) {
    if (i >= now.files.size()) {
      out.push_back(fmt::format("{} is gone", before.files[i].path));
    } else if (i >= before.files.size()) {
      out.push_back(fmt::format("{} is new", now.files[i].path));
    } else if (before.files[i].path != now.files[i].path) {
      out.push_back(fmt::format("{}, was {}", now.files[i].path, before.files[i].path));
    } else if (before.files[i].bytes != now.files[i].bytes) {
      out.push_back(fmt::format("{}: {} bytes, was {}", now.files[i].path, now.files[i].bytes,
                                before.files[i].bytes));
    }
  }
  return out;
}

std::vector<uint32_t> block_order(const Geometry& geometry, uint32_t block, uint32_t epoch) {
  std::vector<uint32_t> order(geometry.blocks[block].records);
  std::iota(order.begin(), order.end(), 0U);
  if (geometry.shuffle_seed == 0) return order;
  Random random(hash_pair(hash_pair(geometry.shuffle_seed, epoch), block));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace flux
