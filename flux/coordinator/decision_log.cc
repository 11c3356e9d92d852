#include "flux/coordinator/decision_log.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "flux/base/hash.h"
#include "flux/base/text.h"

namespace flux {
namespace {

constexpr uint64_t kLogMax = 256ULL << 20;

using Json = nlohmann::ordered_json;

std::string encode(const Decision& d) {
  Json json{{"kind", d.kind}, {"term", d.term}, {"pass", d.pass}};
  if (!d.pass_name.empty()) json["name"] = d.pass_name;
  if (d.geometry != 0) json["geometry"] = d.geometry;
  if (d.kind == "verdict") {
    const BlockId& b = d.batch.block;
    json["batch"] = {b.pass, b.phase, b.epoch, b.block, d.batch.batch, d.batch.batches_in_block};
    json["verdict"] = static_cast<uint32_t>(d.verdict);
  }
  if (!d.why.empty()) json["why"] = d.why;
  if (!d.member.empty()) {
    json["member"] = d.member;
    json["boot"] = d.boot;
    json["id"] = d.id;
  }
  if (d.value) {
    json["value"] = *d.value;
    json["checkpoint"] = d.checkpoint;
  }
  if (d.kind == "lr") json["lr"] = {d.lr.reference, d.lr.workers, d.lr.factor, d.lr.left};
  const std::string body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  // The newline before it ends whatever a writer that died has left.
  return fmt::format("\n{:016x} {}\n", hash_bytes(body.data(), body.size()), body);
}

bool decode_batch(const Json& json, Decision* d) {
  const auto at = json.find("batch");
  if (at == json.end() || !at->is_array() || at->size() != 6) return false;
  uint64_t n[6];
  for (size_t i = 0; i < 6; ++i) {
    if (!(*at)[i].is_number_unsigned()) return false;
    n[i] = (*at)[i].get<uint64_t>();
  }
  const uint64_t verdict = json.value("verdict", uint64_t{kVerdicts});
  if (n[1] > 0xFFFF || n[2] > 0xFFFF || n[4] >= kBatchesPerBlockMax || n[5] > kBatchesPerBlockMax ||
      verdict >= kVerdicts)
    return false;
  d->batch.block = {static_cast<uint32_t>(n[0]), static_cast<uint16_t>(n[1]),
                    static_cast<uint16_t>(n[2]), static_cast<uint32_t>(n[3])};
  d->batch.batch = static_cast<uint8_t>(n[4]);
  d->batch.batches_in_block = static_cast<uint8_t>(n[5]);
  d->verdict = static_cast<Verdict>(verdict);
  return true;
}

bool decode_lr(const Json& json, LrPolicyState* lr) {
  const auto at = json.find("lr");
  if (at == json.end() || !at->is_array() || at->size() != 4) return false;
  lr->reference = (*at)[0].get<uint32_t>();
  lr->workers = (*at)[1].get<uint32_t>();
  lr->factor = (*at)[2].get<double>();
  lr->left = (*at)[3].get<uint64_t>();
  return true;
}

bool decode(const std::string& line, Decision* d) {
  if (line.size() < 18 || line[16] != ' ') return false;
  const std::string body = line.substr(17);
  if (line.substr(0, 16) != fmt::format("{:016x}", hash_bytes(body.data(), body.size())))
    return false;
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return false;
  try {
    d->kind = json.value("kind", std::string());
    d->term = json.value("term", uint64_t{0});
    d->pass = json.value("pass", 0U);
    d->pass_name = json.value("name", std::string());
    d->geometry = json.value("geometry", uint64_t{0});
    d->why = json.value("why", std::string());
    d->member = json.value("member", std::string());
    d->boot = json.value("boot", uint64_t{0});
    d->id = json.value("id", uint64_t{0});
    if (json.contains("value")) d->value = json["value"].get<double>();
    d->checkpoint = json.value("checkpoint", uint64_t{0});
    if (d->kind == "lr" && !decode_lr(json, &d->lr)) return false;
    return d->kind != "verdict" || decode_batch(json, d);
  } catch (const nlohmann::json::exception&) {  // a field of another type
    return false;
  }
}

}  // namespace

std::vector<Decision> compact(const std::vector<Decision>& decisions, uint32_t closed) {
  std::vector<Decision> kept;
  uint64_t latest = 0;
  for (const Decision& d : decisions) {
    const bool replaced = d.term < latest;
    latest = std::max(latest, d.term);
    // Another life began after it.
    if (d.kind == "term") std::erase_if(kept, [](const Decision& k) { return k.kind == "stop"; });
    const bool passing = !d.member.empty() || d.kind == "lr" || d.kind == "end";
    if (d.kind == "term" || (replaced && passing)) continue;
    const bool gone = d.kind == "server_gone" || d.kind == "worker_gone";
    if (gone || d.kind == "server" || d.kind == "worker") {
      std::erase_if(kept, [&](const Decision& k) {
        return k.member == d.member && !k.member.empty() &&
               k.kind == d.kind.substr(0, d.kind.find('_')) && (!gone || k.boot == d.boot);
      });
      if (!gone) kept.push_back(d);
      if (d.kind == "server_gone")
        std::erase_if(kept, [&](const Decision& k) {
          return k.kind == "drain" && k.member == d.member && k.boot == d.boot;
        });
    } else if (d.kind == "drain" || d.kind == "move") {
      std::erase_if(kept, [&](const Decision& k) {
        return k.kind == d.kind && (d.kind == "move" ? k.id == d.id : k.member == d.member);
      });
      kept.push_back(d);
    } else if (d.kind == "lr") {
      std::erase_if(kept, [](const Decision& k) { return k.kind == "lr"; });
      kept.push_back(d);
    } else if (d.kind == "end") {
      std::erase_if(kept, [](const Decision& k) { return !k.member.empty() || k.kind == "lr"; });
    } else if (d.kind == "stop") {
      std::erase_if(kept, [](const Decision& k) { return k.kind == "stop"; });
      kept.push_back(d);
    } else if (d.pass + 1 >= closed || d.value) {
      kept.push_back(d);
    }
  }
  return kept;
}

Status DecisionLog::rewrite(const std::vector<Decision>& decisions) {
  std::string text;
  for (const Decision& decision : decisions) text += encode(decision);
  return files_->write_atomic(path_, text);
}

Status DecisionLog::append(const Decision& decision) {
  return files_->append_synced(path_, encode(decision));
}

Result<std::vector<Decision>> DecisionLog::read() {
  std::vector<Decision> out;
  damaged_.clear();
  if (!files_->exists(path_)) return out;
  FLUX_ASSIGN_OR_RETURN(const std::string text, files_->read(path_, kLogMax));
  size_t begin = 0;
  for (size_t line = 1; begin < text.size(); ++line) {
    const size_t newline = text.find('\n', begin);
    const size_t end = newline == std::string::npos ? text.size() : newline;
    Decision decision;
    if (end > begin) {
      if (newline != std::string::npos && decode(text.substr(begin, end - begin), &decision))
        out.push_back(std::move(decision));
      else
        damaged_.push_back(line);
    }
    begin = end + 1;
  }
  return out;
}

}  // namespace flux
