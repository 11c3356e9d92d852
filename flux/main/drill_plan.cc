#include "flux/main/drill_plan.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "flux/base/text.h"

namespace flux {
namespace {

constexpr uint32_t kSizeMax = 1000;
constexpr TimeNs kCatchUp = 20;  // this part of the time between two faults

Result<uint32_t> parse_count(const std::string& text, uint32_t least, uint32_t most) {
  uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < least || value > most)
    return invalid("'{}' is no number from {} to {}", text, least, most);
  return value;
}

constexpr const char* kForms = "worker, worker:1, server, server:0, coordinator or any";
constexpr const char* kKillForms =
    "worker, worker:1, server, server:0, coordinator, coordinator~log (its log too), any, "
    "server:0+server:1 (both at once) or all";

Result<RoleChoice> parse_role(const std::string& text, const char* forms = kForms) {
  static const std::vector<std::string> kRoles = {"worker", "server", "coordinator", "any"};
  const size_t colon = text.find(':');
  RoleChoice choice;
  choice.role = text.substr(0, colon);
  if (std::find(kRoles.begin(), kRoles.end(), choice.role) == kRoles.end())
    return invalid("'{}' is no role{}; say {}", choice.role, did_you_mean(choice.role, kRoles),
                   forms);
  if (colon == std::string::npos) return choice;
  if (choice.role == "coordinator" || choice.role == "any")
    return invalid("'{}': only workers and servers have numbers", text);
  FLUX_ASSIGN_OR_RETURN(choice.index, parse_count(text.substr(colon + 1), 0, 99'999));
  return choice;
}

Result<FaultSpec> parse_one(FaultKind kind, const char* flag, const std::string& text) {
  FaultSpec spec;
  spec.kind = kind;
  auto role = parse_role(text);
  if (!role.is_ok()) return role.status().with_context(fmt::format("{} {}", flag, text));
  spec.who.push_back(std::move(role).value());
  return spec;
}

std::string roles_text(const std::vector<RoleChoice>& who, const char* between, bool numbers) {
  std::string out;
  for (const RoleChoice& choice : who)
    out += (out.empty() ? "" : between) + (numbers ? choice.text() : choice.role);
  return out;
}

const char* verb_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
      return "kill";
    case FaultKind::kKillAll:
      return "kill all";
    case FaultKind::kPause:
      return "pause";
    case FaultKind::kOom:
      return "oom";
    case FaultKind::kPartition:
      return "partition";
    case FaultKind::kDrain:
      return "drain";
    case FaultKind::kScale:
      return "scale";
    case FaultKind::kKillPoint:
      return "die at";
  }
  return "?";
}

std::string spec_text(const FaultSpec& spec, bool numbers) {
  const std::string verb = verb_of(spec.kind);
  switch (spec.kind) {
    case FaultKind::kKillAll:
      return verb;
    case FaultKind::kScale:
      return verb + " " + spec.scale;
    case FaultKind::kKillPoint:
      return numbers && spec.points.size() == 1
                 ? fmt::format("{} {}", verb, kill_point_name(spec.points[0]))
                 : verb + " point";
    case FaultKind::kPartition:
      return verb + " " + roles_text(spec.who, spec.both_ways ? "-" : ">", numbers);
    default:
      return verb + " " + roles_text(spec.who, "+", numbers) +
             (spec.lose_log ? " and its log" : "");
  }
}

}  // namespace

std::string RoleChoice::text() const {
  return index ? fmt::format("{}:{}", role, *index) : role;
}
std::string FaultSpec::label() const {
  return spec_text(*this, false);
}
std::string FaultSpec::text() const {
  return spec_text(*this, true);
}

Result<FaultSpec> parse_kill(const std::string& text) {
  FaultSpec spec;
  if (text == "all") {
    spec.kind = FaultKind::kKillAll;
    return spec;
  }
  std::string roles = text;
  if (roles == "coordinator~log") {
    spec.lose_log = true;
    roles = "coordinator";
  }
  for (const std::string& part : split(roles, '+')) {
    auto role = parse_role(part, kKillForms);
    if (!role.is_ok()) return role.status().with_context("--kill " + text);
    spec.who.push_back(std::move(role).value());
  }
  return spec;
}

Result<FaultSpec> parse_pause(const std::string& text) {
  return parse_one(FaultKind::kPause, "--pause", text);
}
Result<FaultSpec> parse_oom(const std::string& text) {
  return parse_one(FaultKind::kOom, "--oom", text);
}

Result<FaultSpec> parse_drain(const std::string& text) {
  FLUX_ASSIGN_OR_RETURN(FaultSpec spec, parse_one(FaultKind::kDrain, "--drain", text));
  if (spec.who[0].role == "coordinator" || spec.who[0].role == "any")
    return invalid("--drain {}: workers and servers can be drained", text);
  return spec;
}

Result<FaultSpec> parse_partition(const std::string& text) {
  FaultSpec spec;
  spec.kind = FaultKind::kPartition;
  spec.both_ways = text.find('>') == std::string::npos;
  const std::vector<std::string> ends = split(text, spec.both_ways ? '-' : '>');
  if (ends.size() != 2)
    return invalid(
        "--partition {}: give two roles: worker:0-server:1, or one way worker:0>server:1", text);
  for (const std::string& end : ends) {
    auto role = parse_role(end);
    if (!role.is_ok()) return role.status().with_context("--partition " + text);
    spec.who.push_back(std::move(role).value());
  }
  const bool one = spec.who[0].index || spec.who[0].role == "coordinator";
  if (one && spec.who[0].text() == spec.who[1].text())
    return invalid("--partition {}: {} cannot be cut off from itself; name two ends", text,
                   spec.who[0].text());
  return spec;
}

Result<FaultSpec> parse_scale(const std::string& text) {
  FaultSpec spec;
  spec.kind = FaultKind::kScale;
  const size_t equals = text.find('=');
  spec.scale = text.substr(0, equals);
  if (equals == std::string::npos || (spec.scale != "workers" && spec.scale != "servers"))
    return invalid("--scale {}: say workers=1..8 (drawn) or servers=2,4,3 (in turn)", text);
  const std::string sizes = text.substr(equals + 1);
  const size_t dots = sizes.find("..");
  spec.draw_size = dots != std::string::npos;
  const auto named = [&](const Status& status) { return status.with_context("--scale " + text); };
  if (!spec.draw_size) {
    for (const std::string& size : split(sizes, ',')) {
      const auto value = parse_count(size, 1, kSizeMax);
      if (!value.is_ok()) return named(value.status());
      spec.sizes.push_back(value.value());
    }
    return spec;
  }
  const auto low = parse_count(sizes.substr(0, dots), 1, kSizeMax);
  if (!low.is_ok()) return named(low.status());
  const auto high = parse_count(sizes.substr(dots + 2), 1, kSizeMax);
  if (!high.is_ok()) return named(high.status());
  if (low.value() > high.value())
    return invalid("--scale {}: the first number is above the last; say {}={}..{}", text,
                   spec.scale, high.value(), low.value());
  for (uint32_t size = low.value(); size <= high.value(); ++size) spec.sizes.push_back(size);
  return spec;
}

Result<FaultSpec> parse_at(const std::string& text) {
  FaultSpec spec;
  spec.kind = FaultKind::kKillPoint;
  spec.who.push_back({"server", std::nullopt});
  for (const std::string& name : text == "all" ? kill_point_names() : split(text, ',')) {
    auto order = parse_kill_order(name);
    if (!order.is_ok()) return order.status().with_context("--at");
    spec.points.push_back(order.value().point);
  }
  return spec;
}

Result<TimeNs> parse_duration(const std::string& flag, const std::string& text) {
  auto time = parse_duration(text);
  if (!time.is_ok()) return time.status().with_context(flag);
  return time;
}

Result<TimeNs> parse_duration(const std::string& text) {
  static const std::vector<std::pair<std::string, TimeNs>> kUnits = {
      {"ms", kMillisecond}, {"s", kSecond}, {"m", 60 * kSecond}, {"h", 3600 * kSecond}};
  double number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  std::string unit(read.ptr, end);
  if (unit.empty()) unit = "s";
  for (const auto& [name, size] : kUnits)
    if (read.ec == std::errc() && name == unit && number > 0 && number < 1e6)
      return static_cast<TimeNs>(number * static_cast<double>(size));
  return invalid("'{}' is no time above 0: say 200ms, 30s, 5m or 1h", text);
}

DrillPlan::DrillPlan(DrillPlanOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      workers_(options_.workers),
      servers_(options_.servers) {}

// A drawn number is another one than before, so that every draw is a change.
uint32_t DrillPlan::next_size(const FaultSpec& spec, uint32_t turn, uint64_t drawn) {
  uint32_t& present = spec.scale == "workers" ? workers_ : servers_;
  std::vector<uint32_t> sizes = spec.sizes;
  if (spec.draw_size && sizes.size() > 1) std::erase(sizes, present);
  present = sizes[(spec.draw_size ? drawn : turn) % sizes.size()];
  return present;
}

std::optional<PlannedFault> DrillPlan::next() {
  if (options_.specs.empty()) return std::nullopt;
  if (options_.times != 0 && number_ >= options_.times) return std::nullopt;
  PlannedFault fault;
  fault.number = ++number_;
  const auto kinds = static_cast<uint32_t>(options_.specs.size());
  fault.spec = options_.specs[(number_ - 1) % kinds];
  const uint32_t turn = (number_ - 1) / kinds;  // of this spec
  // All draws are made for every fault, so that one kind does not move the others' draws.
  fault.draw = random_.next();
  const double shift = (2 * random_.uniform() - 1) * options_.jitter;
  const uint64_t drawn = random_.next();
  fault.at_ns = static_cast<TimeNs>((number_ + shift) * static_cast<double>(options_.every_ns));
  if (options_.for_ns != 0 && fault.at_ns > options_.for_ns) return std::nullopt;
  if (fault.spec.kind == FaultKind::kKillPoint) {
    fault.order.point = fault.spec.points[turn % fault.spec.points.size()];
    fault.order.pass = 1 + static_cast<uint32_t>(drawn % std::max(1U, options_.pass_max));
    fault.spec.points = {fault.order.point};
  }
  if (fault.spec.kind == FaultKind::kScale) fault.size = next_size(fault.spec, turn, drawn);
  return fault;
}

TimeNs FaultClock::due(const PlannedFault& fault) const {
  const TimeNs apart = fault.at_ns - planned_;
  return std::max(fault.at_ns, at_ + apart - apart / kCatchUp);
}

void FaultClock::passed(const PlannedFault& fault, TimeNs at) {
  planned_ = fault.at_ns;
  at_ = at;
}

}  // namespace flux
