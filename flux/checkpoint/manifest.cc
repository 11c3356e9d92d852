#include "flux/checkpoint/manifest.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "flux/base/hash.h"

namespace flux {
namespace {

using nlohmann::json;
// Version 2 has chains; without one the text is that of version 1.
constexpr int kVersion = 1;
constexpr int kChainVersion = 2;

int version_of(const Manifest& m) {
  const bool chains = std::any_of(m.shards.begin(), m.shards.end(),
                                  [](const ShardEntry& shard) { return !shard.chain.empty(); });
  return chains ? kChainVersion : kVersion;
}

std::string hex(uint64_t value) {
  return fmt::format("{:016x}", value);
}
uint64_t from_hex(const json& j) {
  return std::stoull(j.get<std::string>(), nullptr, 16);
}

json file_json(const FileInfo& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"hash", hex(file.hash)}};
}
FileInfo file_from(const json& j) {
  return {j.at("name").get<std::string>(), j.at("bytes").get<uint64_t>(), from_hex(j.at("hash"))};
}

// Names come from disk: they must stay inside the checkpoint's folder.
bool good_name(const FileInfo& file) {
  return !file.name.empty() && file.name.find('/') == std::string::npos && file.name[0] != '.';
}
bool good_names(const Manifest& m) {
  const auto good_shard = [](const ShardEntry& shard) {
    return good_name(shard.file) &&
           std::all_of(shard.chain.begin(), shard.chain.end(),
                       [](const ChainLink& link) { return good_name(link.file); });
  };
  return std::all_of(m.files.begin(), m.files.end(), good_name) &&
         std::all_of(m.shards.begin(), m.shards.end(), good_shard);
}
// Folders and operations rise along a chain, and all of it is older than the manifest.
bool good_chain(const Manifest& m, const ShardEntry& shard) {
  if (shard.chain.size() > kChainMax) return false;
  uint64_t number = 0, op = 0;
  for (const ChainLink& link : shard.chain) {
    if (link.number <= number || link.op < op) return false;
    number = link.number;
    op = link.op;
  }
  return shard.chain.empty() || (number < m.number && op <= shard.op);
}

json link_json(const ChainLink& link) {
  json j = file_json(link.file);
  j["number"] = link.number;
  j["op"] = link.op;
  j["stream_hash"] = hex(link.stream_hash);
  return j;
}
ChainLink link_from(const json& j) {
  return {j.at("number").get<uint64_t>(), file_from(j), j.at("op").get<uint64_t>(),
          from_hex(j.at("stream_hash"))};
}
json shard_json(const ShardEntry& shard) {
  json j = file_json(shard.file);
  j["op"] = shard.op;
  j["stream_hash"] = hex(shard.stream_hash);
  j["rows"] = shard.rows;
  for (const ChainLink& link : shard.chain) j["chain"].push_back(link_json(link));
  return j;
}
ShardEntry shard_from(const json& j) {
  ShardEntry shard{file_from(j), j.at("op").get<uint64_t>(), from_hex(j.at("stream_hash")),
                   j.at("rows").get<uint64_t>()};
  if (j.contains("chain"))
    for (const json& link : j.at("chain")) shard.chain.push_back(link_from(link));
  return shard;
}

json pass_json(const ClosedPass& pass) {
  json j = {{"name", pass.name},
            {"records", pass.records},
            {"repeats", pass.repeats},
            {"geometry", hex(pass.geometry)},
            {"skipped_examples", pass.skipped_examples}};
  if (!pass.skipped_by_phase.empty()) j["skipped_by_phase"] = pass.skipped_by_phase;
  if (pass.batches != 0) j["batches"] = pass.batches;
  if (pass.bad_records != 0) j["bad_records"] = pass.bad_records;
  return j;
}
ClosedPass pass_from(const json& j) {
  ClosedPass pass{j.at("name").get<std::string>(), j.at("records").get<uint64_t>(),
                  j.at("repeats").get<uint32_t>(), from_hex(j.at("geometry")),
                  j.at("skipped_examples").get<uint64_t>()};
  if (j.contains("skipped_by_phase"))
    pass.skipped_by_phase = j.at("skipped_by_phase").get<std::vector<uint64_t>>();
  if (j.contains("batches")) pass.batches = j.at("batches").get<uint64_t>();
  if (j.contains("bad_records")) pass.bad_records = j.at("bad_records").get<uint64_t>();
  return pass;
}

json body(const Manifest& m) {
  json closed = json::array();
  for (const ClosedPass& pass : m.closed) closed.push_back(pass_json(pass));
  json shards = json::array();
  for (const ShardEntry& shard : m.shards) shards.push_back(shard_json(shard));
  json files = json::array();
  for (const FileInfo& file : m.files) files.push_back(file_json(file));
  return {{"format", "flux checkpoint"},
          {"version", version_of(m)},
          {"number", m.number},
          {"created", m.created},
          {"job", m.job},
          {"incarnation", hex(m.incarnation)},
          {"epoch", {{"term", m.epoch.term}, {"n", m.epoch.n}}},
          {"model", m.model},
          {"closed", closed},
          {"geometry", hex(m.geometry)},
          {"open_pass", m.open_pass},
          {"examples", m.examples},
          {"shards", shards},
          {"files", files}};
}

Manifest from_body(const json& j) {
  Manifest m;
  m.number = j.at("number").get<uint64_t>();
  m.created = j.at("created").get<std::string>();
  m.job = j.at("job").get<std::string>();
  m.incarnation = from_hex(j.at("incarnation"));
  m.epoch = {j.at("epoch").at("term").get<uint64_t>(), j.at("epoch").at("n").get<uint64_t>()};
  m.model = j.at("model").get<std::map<std::string, std::string>>();
  for (const json& pass : j.at("closed")) m.closed.push_back(pass_from(pass));
  m.geometry = from_hex(j.at("geometry"));
  m.open_pass = j.at("open_pass").get<std::string>();
  m.examples = j.at("examples").get<uint64_t>();
  for (const json& shard : j.at("shards")) m.shards.push_back(shard_from(shard));
  for (const json& file : j.at("files")) m.files.push_back(file_from(file));
  return m;
}

std::string with_checksum(json j) {
  j["checksum"] = hex(hash_bytes(j.dump()));
  return j.dump(1) + "\n";
}

}  // namespace

std::string encode_manifest(const Manifest& manifest) {
  return with_checksum(body(manifest));
}

Result<Manifest> decode_manifest(const std::string& path, std::string_view text) {
  try {
    const json j = json::parse(text);
    if (j.at("format") != "flux checkpoint")
      return error(Code::kCorrupt, "{}: not a flux checkpoint", path);
    if (j.at("version") != kVersion && j.at("version") != kChainVersion)
      return error(Code::kCorrupt, "{}: version {} of the format; this flux reads {} and {}", path,
                   j.at("version").dump(), kVersion, kChainVersion);
    Manifest manifest = from_body(j);
    // The text must be exactly what we would write, checksum included.
    if (encode_manifest(manifest) != text)
      return error(Code::kCorrupt, "{}: checksum does not match", path);
    if (!good_names(manifest)) return error(Code::kCorrupt, "{}: impossible file name", path);
    for (size_t s = 0; s < manifest.shards.size(); ++s)
      if (!good_chain(manifest, manifest.shards[s]))
        return error(Code::kCorrupt, "{}: impossible chain of files of shard {}", path, s);
    return manifest;
  } catch (const json::parse_error& failure) {  // its text quotes raw bytes: only say where
    return error(Code::kCorrupt, "{}:{}: not a readable manifest", path, failure.byte);
  } catch (const std::exception& failure) {  // of the JSON library: it stays inside this file
    return error(Code::kCorrupt, "{}: not a readable manifest ({})", path, failure.what());
  }
}

namespace {

// The lines of a network are "model.003", or "phases.1.NAME.003" in a job with several.
struct Network {
  std::string name;  // of the phase
  std::vector<std::string> lines;
};
using Networks = std::map<std::string, Network>;  // by "model", "phases.1"

// The end of "model" or "phases.1" in the name of a line; npos: it names something else.
size_t network_end(const std::string& field) {
  if (field.starts_with("model.")) return 5;
  return field.starts_with("phases.") ? field.find('.', 7) : std::string::npos;
}

Networks networks_in(const std::map<std::string, std::string>& model) {
  Networks all;
  for (const auto& [field, value] : model) {
    const size_t end = network_end(field);
    if (end == std::string::npos) continue;
    Network& network = all[field.substr(0, end)];
    if (const size_t last = field.rfind('.'); last > end)
      network.name = field.substr(end + 1, last - end - 1);
    network.lines.push_back(value);
  }
  return all;
}

// Where parameters lie follows from the layers before.
std::string without_offsets(const std::string& line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool offset = line[i] == '@' && i > 0 && line[i - 1] == ']';
    if (!offset) out += line[i];
    while (offset && i + 1 < line.size() && line[i + 1] >= '0' && line[i + 1] <= '9') ++i;
  }
  return out;
}

// The first layer that differs: those behind it differ only because of it, or as well.
std::string first_difference(const std::string& at, const Network& checkpoint, const Network& job) {
  size_t i = 0;
  while (i < checkpoint.lines.size() && i < job.lines.size() && checkpoint.lines[i] == job.lines[i])
    ++i;
  if (i == checkpoint.lines.size() && i == job.lines.size()) return "";
  const auto layer = [i](const Network& network) {
    return i < network.lines.size() ? without_offsets(network.lines[i]) : "no more layer";
  };
  return fmt::format("{}: the first layer that differs: {} in the checkpoint, {} in the job", at,
                     layer(checkpoint), layer(job));
}

void add_network_differences(const Networks& checkpoint, const Networks& job,
                             std::vector<std::string>* out) {
  for (const auto& [at, network] : checkpoint) {
    const auto other = job.find(at);
    if (other == job.end()) {
      out->push_back(fmt::format("{}: {} in the checkpoint, absent from the job", at,
                                 network.name.empty() ? "a network" : network.name));
      continue;
    }
    if (network.name != other->second.name)
      out->push_back(fmt::format("{}.name: {} in the checkpoint, {} in the job", at, network.name,
                                 other->second.name));
    const std::string line = first_difference(at, network, other->second);
    if (!line.empty()) out->push_back(line);
  }
  for (const auto& [at, network] : job)
    if (!checkpoint.contains(at))
      out->push_back(fmt::format("{}: absent from the checkpoint, {} in the job", at,
                                 network.name.empty() ? "a network" : network.name));
}

}  // namespace

std::vector<std::string> model_differences(const std::map<std::string, std::string>& checkpoint,
                                           const std::map<std::string, std::string>& job) {
  std::vector<std::string> out;
  const auto is_line = [](const std::string& field) {
    return network_end(field) != std::string::npos;
  };
  for (const auto& [name, value] : checkpoint) {
    const auto at = job.find(name);
    if (is_line(name)) continue;
    if (at == job.end()) {
      out.push_back(fmt::format("{}: {} in the checkpoint, absent from the job", name, value));
    } else if (at->second != value) {
      out.push_back(
          fmt::format("{}: {} in the checkpoint, {} in the job", name, value, at->second));
    }
  }
  for (const auto& [name, value] : job)
    if (!checkpoint.contains(name) && !is_line(name))
      out.push_back(fmt::format("{}: absent from the checkpoint, {} in the job", name, value));
  add_network_differences(networks_in(checkpoint), networks_in(job), &out);
  return out;
}

}  // namespace flux
