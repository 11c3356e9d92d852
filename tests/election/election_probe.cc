// A candidate that does what it is told on standard input, one command per line, and says on
// standard output how each went; tests/e2e/election.py starts several and kills, stops and cuts
// them off.
//
//   election_probe NAME OUTPUT TTL ETCD [CA-FILE [CERTIFICATE KEY]]
//     campaign     "waits ..." whenever the reason changes, then "ok leads"
//     claim ABOVE  "ok TERM"
//     still TERM   "ok"
//     held         "ok"; never asks anybody
//     leader       "ok TERM NAME ADDRESS HTTP"
//     resign       "ok"
//     turns N      N times campaign, claim, resign; "term T" for each, then "ok turns"
// A failure is "failed CODE message". At the end of input the process goes without resigning.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "flux/election/open_election.h"

namespace flux {
namespace {

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

bool said_failure(const Status& status) {
  if (status.is_ok()) return false;
  say(fmt::format("failed {} {}", code_name(status.code()), status.message()));
  return true;
}

Status campaign(Election* election) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread watcher([&] {
    std::string last;
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return done; })) {
      const std::string now = election->waiting_for();
      if (!now.empty() && now != last) say("waits " + now);
      if (!now.empty()) last = now;
    }
  });
  const Status status = election->campaign(nullptr);
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_all();
  watcher.join();
  return status;
}

Status turn(Election* election) {
  FLUX_RETURN_IF_ERROR(election->campaign(nullptr));
  FLUX_ASSIGN_OR_RETURN(const uint64_t term, election->claim_term(0));
  FLUX_RETURN_IF_ERROR(election->still_mine(term));
  say(fmt::format("term {}", term));
  return election->resign();
}

void obey(Election* election, const std::string& verb, uint64_t number) {
  if (verb == "campaign") {
    if (!said_failure(campaign(election))) say("ok leads");
  } else if (verb == "claim") {
    const Result<uint64_t> term = election->claim_term(number);
    if (!said_failure(term.status())) say(fmt::format("ok {}", term.value()));
  } else if (verb == "still") {
    if (!said_failure(election->still_mine(number))) say("ok");
  } else if (verb == "held") {
    if (!said_failure(election->lease_held())) say("ok");
  } else if (verb == "leader") {
    const Result<LeaderInfo> found = election->leader();
    if (said_failure(found.status())) return;
    const LeaderInfo& leader = found.value();
    say(fmt::format("ok {} {} {} {}", leader.term, leader.who.name, leader.who.address,
                    leader.who.http));
  } else if (verb == "resign") {
    if (!said_failure(election->resign())) say("ok");
  } else if (verb == "turns") {
    for (uint64_t i = 0; i < number; ++i)
      if (said_failure(turn(election))) return;
    say("ok turns");
  } else {
    say("failed invalid no such command: " + verb);
  }
}

int run(const std::vector<std::string>& arguments) {
  ElectionSetup setup;
  setup.files = &real_files();
  setup.job = "probe";
  setup.output = arguments[1];
  setup.ttl_s = std::atoll(arguments[2].c_str());
  setup.etcd = arguments[3];
  if (arguments.size() > 4) setup.ca_file = arguments[4];
  if (arguments.size() > 6) setup.certificate = arguments[5], setup.key = arguments[6];
  const auto election = open_election(setup);
  if (said_failure(election.status())) return 2;
  const std::string& name = arguments[0];
  election.value()->announce(
      {name, std::hash<std::string>()(name), "tcp:" + name + ":1", "http://" + name});
  say("ready");
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb;
    uint64_t number = 0;
    words >> verb >> number;
    obey(election.value().get(), verb, number);
  }
  std::fflush(stdout);
  ::_exit(0);
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 4) {
    std::fputs("usage: election_probe NAME OUTPUT TTL ETCD [CA-FILE [CERTIFICATE KEY]]\n", stderr);
    return 2;
  }
  return flux::run(arguments);
}
