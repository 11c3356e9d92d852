#include "flux/main/role_keeper.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include <sys/un.h>

#include "flux/base/text.h"
#include "flux/main/job_roles.h"
#include "flux/main/role_log.h"
#include "flux/platform/ssh_platform.h"
#include "flux/rpc/address.h"
#include "flux/rpc/fault_file.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr TimeNs kLookEvery = kSecond / 5;
constexpr TimeNs kQuiet = kSecond / 2;     // after somebody left, before another comes
constexpr TimeNs kReached = 10 * kSecond;  // ssh says earlier that it cannot reach a host
constexpr int kBadInput = 2;
constexpr int kStopped = 130;  // a role that a signal asked to stop
constexpr std::streamoff kTailBytes = 64 << 10;
constexpr TimeNs kMemoryPause = kSecond / 2;

// 0 if it is not there.
int64_t size_of(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  return failed ? 0 : static_cast<int64_t>(size);
}

}  // namespace

bool starved_by_drill(const ClusterFolder& folder, int64_t pid) {
  FaultFile file(folder.faults_file());
  const std::vector<int64_t>& ooms = file.at(steady_now_ns()).ooms;
  return std::find(ooms.begin(), ooms.end(), pid) != ooms.end();
}

std::string local_address(const ClusterFolder& folder, const std::string& role) {
  const std::string path = join_path(folder.sockets(), role);
  return path.size() < sizeof(sockaddr_un::sun_path) ? "unix:" + path : "tcp:127.0.0.1:0";
}

RoleKeeper::RoleKeeper(const Job& job, RoleKeeperOptions options, const ClusterFolder& folder,
                       Platform* platform, MemoryWatch* memory, Say say)
    : job_(job),
      options_(std::move(options)),
      folder_(folder),
      platform_(platform),
      memory_(memory),
      say_(std::move(say)),
      hung_(job.hung_after * kSecond) {}

Status RoleKeeper::start_all() {
  servers_wanted_ = options_.run.servers;
  workers_wanted_ = options_.run.workers;
  for (uint32_t i = 0; i < options_.run.servers; ++i) add(true);
  for (uint32_t i = 0; i < options_.run.workers; ++i) add(false);
  for (Member& member : members_) FLUX_RETURN_IF_ERROR(start(&member));
  return Status::ok();
}

uint32_t RoleKeeper::count(bool servers) const {
  return static_cast<uint32_t>(
      std::count_if(members_.begin(), members_.end(), [servers](const Member& member) {
        return member.server == servers && here(member) && !member.retired;
      }));
}

void RoleKeeper::add(bool server) {
  Member member;
  member.server = server;
  for (const Member& other : members_)
    if (other.server == server) member.number = std::max(member.number, other.number + 1);
  member.name = fmt::format("{}-{}", server ? "server" : "worker", member.number);
  members_.push_back(std::move(member));
}

// --- starting ---

std::string RoleKeeper::listen_address(const Member& member) const {
  const auto at = parse_address(options_.coordinator);
  const bool near = at.is_ok() && at.value().is_loopback();
  if (options_.run.hosts.empty()) return local_address(folder_, member.name);
  return near ? "tcp:127.0.0.1:0" : "tcp:0.0.0.0:0";
}

WorkerShare RoleKeeper::full_share() const {
  const uint32_t cores = std::max(1U, std::thread::hardware_concurrency() / options_.run.workers);
  const bool set = job_.threads != 0;
  return {std::max({job_.push_in_flight, job_.pull_ahead, 1U}),
          set ? worker_threads(job_, -1) : cores};
}

std::vector<std::string> RoleKeeper::words(const Member& member) const {
  const RunArguments& run = options_.run;
  std::vector<std::string> words = {options_.program, member.server ? "server" : "worker"};
  if (!run.certificates.empty())
    words.insert(words.end(), {"--certs", run.certificates});
  else if (is_local_host(member.host))
    words.insert(words.end(), {"--token-file", folder_.token_file()});
  // Also with certificates: the leash is its standard input.
  if (!is_local_host(member.host)) words.emplace_back("--token-stdin");
  if (run.insecure) words.emplace_back("--insecure");
  if (!run.chaos.empty()) words.insert(words.end(), {"--chaos", run.chaos});
  if (run.drillable) words.insert(words.end(), {"--faults", folder_.faults_file()});
  words.insert(words.end(), {"--coordinator", options_.coordinator, "--name", member.name});
  if (member.server) {
    words.insert(words.end(), {"--listen", listen_address(member)});
    return words;
  }
  const WorkerShare share = member.share.value_or(full_share());
  words.insert(words.end(), {"--threads", std::to_string(share.threads)});
  if (!run.die_on.empty()) words.insert(words.end(), {"--die-on", run.die_on});
  if (member.share) words.insert(words.end(), {"--in-flight", std::to_string(share.in_flight)});
  return words;
}

Status RoleKeeper::start(Member* member) {
  member->start_at = 0;
  member->host = options_.hosts.take(steady_now_ns());
  ProcessSpec spec;
  spec.name = member->name;
  spec.arguments = words(*member);
  if (member->server && options_.run.drillable) add_kill_point(*member, &spec.arguments);
  spec.log = folder_.log_of(member->name);
  spec.host = member->host;
  member->log_from = size_of(spec.log);
  if (!is_local_host(member->host)) spec.input = options_.token + "\n";
  auto started = platform_->start(spec);
  if (!started.is_ok()) {
    options_.hosts.give_back(member->host);
    return started.status();
  }
  member->process = started.value();
  member->started = steady_now_ns();
  hung_.started(member->name);
  return Status::ok();
}

// What a drill asks of the next process of this name, once.
void RoleKeeper::add_kill_point(const Member& member, std::vector<std::string>* words) {
  FaultFile file(folder_.faults_file());
  const std::string order = orders_.take(member.name, file.at(steady_now_ns()).starts);
  if (!order.empty()) words->insert(words->end(), {"--die-at", order});
}

void RoleKeeper::tick() {
  if (ending_) return;
  start_due();
  memory_->look(steady_now_ns());
  if (steady_now_ns() < look_at_) return;
  look_at_ = steady_now_ns() + kLookEvery;
  for (const Member& member : members_)
    if (member.process && steady_now_ns() - member.started > kReached) pauses_.reached();
  if (options_.run.drillable)
    orders_.look(FaultFile(folder_.faults_file()).at(steady_now_ns()).starts);
  obey_wanted();
}

void RoleKeeper::start_due() {
  for (Member& member : members_) {
    if (member.start_at == 0 || steady_now_ns() < member.start_at) continue;
    const Status started = start(&member);
    if (!started.is_ok()) give_up(&member, started.message(), started.code());
  }
}

// --- ends ---

void RoleKeeper::handle(const ProcessEnd& end) {
  for (Member& member : members_)
    if (member.process == end.id) {
      member.process.reset();
      options_.hosts.give_back(member.host);
      if (!ending_) died(&member, end);
      return;
    }
}

void RoleKeeper::died(Member* member, const ProcessEnd& end) {
  if (member->retired) return;
  // Drained, or the job ends, or a worker was asked to leave: the coordinator knows which, and says
  // whether another one is wanted. A server that a signal stopped takes its shards with it.
  const bool left = end.signal == 0 && (end.code == 0 || (end.code == kStopped && !member->server));
  if (left) {
    quiet_until_ = steady_now_ns() + kQuiet;
    return;
  }
  const std::string tail = log_tail(*member);
  const std::string last = reason_in_log(tail);
  const std::string what =
      end.host_lost ? fmt::format("{}: host {} is lost: {}", member->name, member->host, last)
                    : fmt::format("{} ended: {}{}", member->name, end.text(),
                                  end.signal == 0 && !last.empty() ? ": " + last : "");
  if (end.host_lost) return host_lost(member, what);
  if (end.signal == 0 && end.code == kBadInput) return give_up(member, what, Code::kInvalid);
  if (memory_->ran_out(end, tail, is_local_host(member->host))) return out_of_memory(member, end);
  // A drill kills on purpose, as often as it likes.
  const bool on_purpose = options_.run.drillable && end.signal != 0;
  const auto at = on_purpose ? steady_now_ns() : member->restarts.died(steady_now_ns());
  if (!at)
    return give_up(member,
                   fmt::format("{}; it died {} times within {} s", what,
                               member->restarts.options().deaths_max + 1,
                               member->restarts.options().window_ns / kSecond),
                   Code::kUnavailable);
  member->start_at = *at;
  say_(what + "; started again");
}

// No fault of the role: it goes to another host, and that does not count as a death.
void RoleKeeper::host_lost(Member* member, const std::string& what) {
  const TimeNs now = steady_now_ns();
  options_.hosts.lost(member->host, now);
  if (!options_.hosts.all_lost(now)) {
    member->start_at = now;
    return say_(what + "; started again");
  }
  const auto at = pauses_.next(now);
  if (!at)
    return fail(error(Code::kUnavailable,
                      "no host of {} could be reached for {} s: {}; see that 'ssh HOST true' works "
                      "without a question, and run the job again",
                      options_.run.hosts, HostPauses::kGiveUp / kSecond, what));
  member->start_at = *at;
  say_(fmt::format("{}; no host is left: tried again in {:.0f} s, given up after {} s", what,
                   static_cast<double>(*at - now) * 1e-9, HostPauses::kGiveUp / kSecond));
}

void RoleKeeper::out_of_memory(Member* member, const ProcessEnd& end) {
  const TimeNs now = steady_now_ns();
  const bool here = is_local_host(member->host);
  const std::string what =
      fmt::format("{} ended: {}: out of memory{}: {}", member->name, end.text(),
                  here ? "" : " of host " + member->host, memory_->text(end, here));
  const WorkerShare had = member->share.value_or(full_share());
  if (member->server || had.is_least()) {
    const bool on_purpose = options_.run.drillable && starved_by_drill(folder_, end.pid);
    if (!on_purpose && !member->restarts.out_of_memory(now)) return no_memory_left(member, what);
  }
  member->start_at = now + kMemoryPause;
  if (member->server)
    return say_(
        fmt::format("{}; started again; 'flux scale {} --servers {}' would give it fewer "
                    "rows",
                    what, job_.output, servers_wanted_ + 1));
  member->share = had.half();
  say_(fmt::format("{}; started again with at most {} in flight and {} thread(s)", what,
                   member->share->in_flight, member->share->threads));
}

// Others do the work of such a worker; but rows that do not fit here do not fit elsewhere.
void RoleKeeper::no_memory_left(Member* member, const std::string& what) {
  const RestartOptions& bound = member->restarts.options();
  const std::string often = fmt::format("{} times within {} minutes", bound.memory_deaths_max + 1,
                                        bound.memory_window_ns / (60 * kSecond));
  if (!member->server)
    return give_up(
        member,
        fmt::format("{}; {} with one batch in flight and one thread: a worker needs more "
                    "memory than that, or a smaller data.batch",
                    what, often),
        Code::kUnavailable);
  fail(
      error(Code::kUnavailable,
            "{}; {}: its rows need more memory than that; give the job more memory, or more "
            "servers (--servers {}; while it runs 'flux scale {} --servers {}'), and run it again: "
            "it goes on from its last checkpoint",
            what, often, servers_wanted_ + 1, job_.output, servers_wanted_ + 1));
}

void RoleKeeper::give_up(Member* member, const std::string& what, Code code) {
  say_(what + "; not started again");
  uint32_t& wanted = target(member->server);
  if (count(member->server) > 0) {  // the others go on without it
    wanted = std::min(wanted, count(member->server));
    return;
  }
  fail(error(code, "no {} is left: {}; its lines: {}", member->server ? "server" : "worker", what,
             folder_.log_of(member->name)));
}

void RoleKeeper::fail(Status status) {
  if (failure_.is_ok()) failure_ = std::move(status);
}

// --- scaling ---

void RoleKeeper::obey_wanted() {
  const auto read = folder_.read_wanted();
  const WantedRoles wanted = read.is_ok() ? read.value() : WantedRoles{};
  if (read.is_ok()) {
    obey_numbers(wanted);
    note_leaving(wanted);
    kill_hung(wanted);
  }
  if (wanted.ending) return;  // all leave; who dies is needed and started again nevertheless
  keep(true);
  keep(false);
}

void RoleKeeper::obey_numbers(const WantedRoles& wanted) {
  if (wanted.orders == wanted_orders_) return;
  wanted_orders_ = wanted.orders;
  for (const bool servers : {true, false}) {
    const auto number = servers ? wanted.servers : wanted.workers;
    if (!number || *number == target(servers)) continue;
    say_(fmt::format("{}: {} now, {} wanted", servers ? "servers" : "workers", count(servers),
                     *number));
    target(servers) = *number;
  }
}

// The coordinator has asked them already, or somebody by a signal: no other has to go for that.
void RoleKeeper::note_leaving(const WantedRoles& wanted) {
  for (Member& member : members_) {
    const auto at = wanted.leaving.find(member.name);
    if (at != wanted.leaving.end() && is_process(member, at->second)) member.retired = true;
  }
}

// By its number where it runs; of another host that is not known here.
bool RoleKeeper::is_process(const Member& member, uint32_t pid) const {
  const auto running = platform_->running();
  return std::any_of(running.begin(), running.end(), [&](const ProcessInfo& info) {
    return member.process == info.id &&
           (!is_local_host(member.host) || info.pid == static_cast<int64_t>(pid));
  });
}

// Taken for dead, and it has not come back: stopped, or stuck.
void RoleKeeper::kill_hung(const WantedRoles& wanted) {
  for (const HungRoles::Hung& hung : hung_.look(wanted.lost, steady_now_ns()))
    for (const Member& member : members_) {
      if (member.name != hung.name || !is_process(member, hung.pid)) continue;
      say_(fmt::format("{} was lost {} s ago and has not come back: its process is killed",
                       member.name, job_.hung_after));
      platform_->kill(*member.process);
    }
}

// As many as are wanted, those that leave not counted.
void RoleKeeper::keep(bool servers) {
  while (steady_now_ns() >= quiet_until_ && count(servers) < target(servers)) {
    add(servers);
    const Status started = start(&members_.back());
    if (!started.is_ok()) return give_up(&members_.back(), started.message(), started.code());
    say_(fmt::format("{} is started: {} {}(s) wanted", members_.back().name, target(servers),
                     servers ? "server" : "worker"));
  }
  // Servers too many are drained first; then they end by themselves.
  while (!servers && count(false) > target(false)) retire_highest_worker();
}

void RoleKeeper::retire_highest_worker() {
  Member* highest = nullptr;
  for (Member& member : members_)
    if (!member.server && here(member) && !member.retired &&
        (highest == nullptr || member.number > highest->number))
      highest = &member;
  highest->retired = true;
  highest->start_at = 0;
  if (highest->process) platform_->ask_to_stop(*highest->process);
}

std::string RoleKeeper::log_tail(const Member& member) const {
  std::ifstream file(folder_.log_of(member.name), std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>({0, member.log_from, size - kTailBytes}));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace flux
