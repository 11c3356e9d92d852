#include "flux/data/geometry.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "flux/base/bytes.h"
#include "flux/base/hash.h"
#include "flux/base/random.h"

namespace flux {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kVersion = 1;
constexpr uint64_t kBlocksWanted = 64;  // enough to share among workers and to shuffle leases

Status corrupt(std::string_view what) {
  return error(Code::kCorrupt, "geometry: {}; delete the file to cut the data anew", what);
}

// Reads typed fields of one JSON object; the first that is absent or of another type is kept.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}
  uint64_t number(const char* name, uint64_t max = ~0ULL) {
    const Json* field = find(name);
    if (field == nullptr || !field->is_number_unsigned() || field->get<uint64_t>() > max)
      return miss(name), 0;
    return field->get<uint64_t>();
  }
  std::string text(const char* name) {
    const Json* field = find(name);
    if (field == nullptr || !field->is_string()) return miss(name), std::string();
    return field->get<std::string>();
  }
  bool flag(const char* name) {
    const Json* field = find(name);
    if (field == nullptr || !field->is_boolean()) return miss(name), false;
    return field->get<bool>();
  }
  const Json& list(const char* name) {
    static const Json kEmpty = Json::array();
    const Json* field = find(name);
    if (field == nullptr || !field->is_array()) return miss(name), kEmpty;
    return *field;
  }
  std::vector<uint32_t> numbers(const char* name) {
    std::vector<uint32_t> out;
    for (const Json& item : list(name)) {
      if (!item.is_number_unsigned() || item.get<uint64_t>() > UINT32_MAX) return miss(name), out;
      out.push_back(item.get<uint32_t>());
    }
    return out;
  }
  Status status() const {
    return missed_.empty() ? Status::ok() : corrupt("field '" + missed_ + "' is absent or wrong");
  }

 private:
  const Json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }
  void miss(const char* name) {
    if (missed_.empty()) missed_ = name;
  }
  const Json& object_;
  std::string missed_;
};

bool bad_lines_fit(const DataBlock& block) {
  return std::adjacent_find(block.bad.begin(), block.bad.end(), std::greater_equal<>()) ==
             block.bad.end() &&
         (block.bad.empty() || block.bad.back() < block.lines());
}

Status check_blocks(const Geometry& g) {
  if (g.batch_size == 0) return corrupt("batch_size is 0");
  std::vector<uint64_t> records(g.files.size(), 0);
  // Text blocks follow each other; those of a block file may share a chunk.
  std::vector<uint64_t> begin(g.files.size(), 0);
  uint64_t next = 0;
  uint32_t file = 0;
  for (const DataBlock& b : g.blocks) {
    const bool ordered = b.file >= file && b.file < g.files.size() && b.first_record == next;
    if (!ordered || b.begin < begin[b.file] || b.end <= b.begin || b.records == 0 ||
        b.records > uint64_t{g.batch_size} * kBlockBatches || !bad_lines_fit(b))
      return corrupt(fmt::format("block {} does not follow the one before", &b - g.blocks.data()));
    file = b.file;
    next += b.records;
    begin[b.file] = b.begin;
    records[b.file] += b.records;
  }
  for (size_t i = 0; i < g.files.size(); ++i)
    if (records[i] != g.files[i].records)
      return corrupt(fmt::format("the blocks of {} hold {} records, not {}", g.files[i].path,
                                 records[i], g.files[i].records));
  return Status::ok();
}

}  // namespace

void number_lines(Geometry* g) {
  std::vector<uint64_t> lines(g->files.size(), 0);
  for (DataBlock& block : g->blocks) {
    block.lines_before = lines[block.file];
    lines[block.file] += block.lines();
  }
}

uint32_t block_batches(uint64_t records, uint32_t batch_size) {
  const uint64_t batches = records / batch_size + (records % batch_size != 0);
  return static_cast<uint32_t>(std::clamp<uint64_t>(batches / kBlocksWanted, 1, kBlockBatches));
}

uint64_t Geometry::records() const {
  uint64_t sum = 0;
  for (const DataFile& file : files) sum += file.records;
  return sum;
}

uint64_t DataBlock::number_in_pass(uint32_t line) const {
  const auto before = std::lower_bound(bad.begin(), bad.end(), line) - bad.begin();
  return first_record + line - static_cast<uint64_t>(before);
}

uint64_t Geometry::bad_records() const {
  uint64_t sum = bad_before;
  for (const DataBlock& block : blocks) sum += block.bad.size();
  return sum;
}

uint32_t Geometry::batches_in(uint32_t block) const {
  return blocks[block].records / batch_size + (blocks[block].records % batch_size != 0);
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
  ByteWriter out;
  out.put(kVersion);
  out.text(format);
  if (!pipe.empty()) out.text(pipe);
  out.put(batch_size);
  out.put(shuffle_seed);
  out.put<uint64_t>(files.size());
  for (const DataFile& file : files) {
    out.text(file.path);
    out.put(file.bytes);
    out.put(file.records);
    out.put(static_cast<uint8_t>(file.packing));
  }
  out.put<uint64_t>(blocks.size());
  for (const DataBlock& b : blocks) {
    out.put(b.file);
    out.put(b.begin);
    out.put(b.end);
    out.put(b.first_record);
    out.put(b.records);
    if (b.bad.empty()) continue;
    out.put<uint64_t>(b.bad.size());
    for (const uint32_t line : b.bad) out.put(line);
  }
  if (bad_before != 0) out.put(bad_before);
  return hash_bytes(out.str());
}

std::string Geometry::to_json() const {
  Json root;
  root["version"] = kVersion;
  root["hash"] = fmt::format("{:016x}", hash());
  root["format"] = format;
  if (!pipe.empty()) root["pipe"] = pipe;
  root["batch_size"] = batch_size;
  root["shuffle_seed"] = shuffle_seed;
  if (bad_before != 0) root["bad_before"] = bad_before;
  root["files"] = Json::array();
  for (const DataFile& file : files) {
    root["files"].push_back({{"path", file.path},
                             {"bytes", file.bytes},
                             {"records", file.records},
                             {"gzip", file.packing == Packing::kGzip},
                             {"modified_ns", file.modified_ns},
                             {"content", file.content}});
    if (file.packing > Packing::kGzip)
      root["files"].back()["packing"] = static_cast<uint8_t>(file.packing);
    if (file.in_order) root["files"].back()["in_order"] = true;
  }
  root["blocks"] = Json::array();
  for (const DataBlock& b : blocks) {
    root["blocks"].push_back({{"file", b.file},
                              {"begin", b.begin},
                              {"end", b.end},
                              {"first_record", b.first_record},
                              {"records", b.records}});
    if (b.content != 0) root["blocks"].back()["content"] = b.content;
    if (!b.bad.empty()) root["blocks"].back()["bad"] = b.bad;
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Geometry> Geometry::from_json(std::string_view text) {
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) return corrupt("not a JSON object");
  Fields top(root);
  const uint64_t version = top.number("version");
  FLUX_RETURN_IF_ERROR(top.status());
  if (version != kVersion)
    return corrupt(fmt::format("version {}, this program reads {}", version, kVersion));
  Geometry g;
  g.format = top.text("format");
  if (root.contains("pipe")) g.pipe = top.text("pipe");
  g.batch_size = static_cast<uint32_t>(top.number("batch_size", UINT32_MAX));
  g.shuffle_seed = top.number("shuffle_seed");
  if (root.contains("bad_before")) g.bad_before = top.number("bad_before");
  for (const Json& item : top.list("files")) {
    Fields f(item);
    const Packing packing =
        item.contains("packing")
            ? static_cast<Packing>(f.number("packing", static_cast<uint64_t>(Packing::kColumns)))
            : (f.flag("gzip") ? Packing::kGzip : Packing::kPlain);
    g.files.push_back({f.text("path"), f.number("bytes"), f.number("records"), packing,
                       f.number("modified_ns"), f.number("content"),
                       item.contains("in_order") && f.flag("in_order")});
    FLUX_RETURN_IF_ERROR(f.status());
  }
  for (const Json& item : top.list("blocks")) {
    Fields f(item);
    g.blocks.push_back({static_cast<uint32_t>(f.number("file", UINT32_MAX)), f.number("begin"),
                        f.number("end"), f.number("first_record"),
                        static_cast<uint32_t>(f.number("records", UINT32_MAX))});
    if (item.contains("bad")) g.blocks.back().bad = f.numbers("bad");
    if (item.contains("content")) g.blocks.back().content = f.number("content");
    FLUX_RETURN_IF_ERROR(f.status());
  }
  const std::string expected = top.text("hash");
  FLUX_RETURN_IF_ERROR(top.status());
  FLUX_RETURN_IF_ERROR(check_blocks(g));
  number_lines(&g);
  const std::string found = fmt::format("{:016x}", g.hash());
  if (found != expected)
    return corrupt(fmt::format("its hash is {}, but {} is written in it", found, expected));
  return g;
}

std::vector<std::string> geometry_differences(const Geometry& before, const Geometry& now) {
  std::vector<std::string> out;
  const auto differ = [&](const auto& what, const auto& a, const auto& b) {
    if (a != b) out.push_back(fmt::format("{} {}, was {}", what, b, a));
  };
  differ("format", before.format, now.format);
  if (before.pipe != now.pipe)
    out.push_back(fmt::format("pipe {}, was {}", now.pipe.empty() ? "none" : now.pipe,
                              before.pipe.empty() ? "none" : before.pipe));
  differ("batch_size", before.batch_size, now.batch_size);
  differ("shuffle_seed", before.shuffle_seed, now.shuffle_seed);
  differ("files:", before.files.size(), now.files.size());
  for (size_t i = 0; i < std::min(before.files.size(), now.files.size()); ++i) {
    const DataFile& a = before.files[i];
    const DataFile& b = now.files[i];
    if (a.path != b.path) {
      out.push_back(fmt::format("file {} is {}, was {}", i + 1, b.path, a.path));
      continue;
    }
    if (a.bytes != b.bytes)
      out.push_back(fmt::format("{}: {} bytes, was {}", a.path, b.bytes, a.bytes));
    else if (a.content != b.content)
      out.push_back(fmt::format("{}: its content has changed", a.path));
    if (a.records != b.records)
      out.push_back(fmt::format("{}: {} records, was {}", a.path, b.records, a.records));
    if (a.packing != b.packing)
      out.push_back(
          fmt::format("{}: {}, was {}", a.path, packing_name(b.packing), packing_name(a.packing)));
  }
  if (out.empty()) differ("blocks:", before.blocks.size(), now.blocks.size());
  if (out.empty() && before.hash() != now.hash()) out.emplace_back("blocks are cut elsewhere");
  return out;
}

std::vector<uint32_t> block_order(const Geometry& geometry, uint32_t block, uint32_t epoch) {
  const DataBlock& in = geometry.blocks[block];
  std::vector<uint32_t> order(in.lines());
  std::iota(order.begin(), order.end(), 0);
  if (!in.bad.empty())
    std::erase_if(order, [&](uint32_t line) {
      return std::binary_search(in.bad.begin(), in.bad.end(), line);
    });
  if (geometry.shuffle_seed == 0) return order;
  Random random(hash_pair(hash_pair(geometry.shuffle_seed, epoch), block));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace flux
