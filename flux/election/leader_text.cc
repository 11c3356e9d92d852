#include "flux/election/leader_text.h"

#include <nlohmann/json.hpp>

#include "flux/base/text.h"

namespace flux {
namespace {

std::string text_in(const nlohmann::json& json, const char* name) {
  const auto it = json.find(name);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

uint64_t number_in(const nlohmann::json& json, const char* name) {
  const auto it = json.find(name);
  return it != json.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
}

}  // namespace

std::string term_name(uint64_t term) {
  return fmt::format("{:012}", term);
}

std::optional<uint64_t> term_of(std::string_view name) {
  if (name.size() != 12) return std::nullopt;
  uint64_t term = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return std::nullopt;
    term = term * 10 + static_cast<uint64_t>(c - '0');
  }
  return term;
}

std::string encode_leader(const LeaderInfo& leader) {
  const nlohmann::json json = {{"term", leader.term},
                               {"name", leader.who.name},
                               {"id", leader.who.id},
                               {"address", leader.who.address},
                               {"http", leader.who.http}};
  // A host may have a name in any encoding.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

LeaderInfo decode_leader(std::string_view text) {
  LeaderInfo leader;
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return leader;
  leader.term = number_in(json, "term");
  leader.who.name = text_in(json, "name");
  leader.who.id = number_in(json, "id");
  leader.who.address = text_in(json, "address");
  leader.who.http = text_in(json, "http");
  return leader;
}

std::string describe(const LeaderInfo& leader) {
  std::vector<std::string> known;
  if (leader.term != 0) known.push_back(fmt::format("term {}", leader.term));
  if (!leader.who.address.empty()) known.push_back(leader.who.address);
  const std::string name = leader.who.name.empty() ? "another coordinator" : leader.who.name;
  return known.empty() ? name : fmt::format("{} ({})", name, join(known, ", "));
}

}  // namespace flux
