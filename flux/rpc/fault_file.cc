#include "flux/rpc/fault_file.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

#include <sys/stat.h>

#include "flux/base/text.h"

namespace flux {
namespace {

constexpr TimeNs kLookEvery = 50 * kMillisecond;
constexpr size_t kBytesMax = 1 << 20;

bool names(const std::string& pattern, const std::vector<std::string>& who) {
  return pattern == "*" || std::find(who.begin(), who.end(), pattern) != who.end();
}

Result<int64_t> parse_pid(const std::string& word) {
  int64_t pid = 0;
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, pid);
  if (read.ec != std::errc() || read.ptr != end || pid <= 0)
    return invalid("'{}' is no process number", word);
  return pid;
}

Status parse_line(const std::vector<std::string>& words, Faults* out) {
  if (words[0] == "oom" && words.size() == 2) {
    FLUX_ASSIGN_OR_RETURN(const int64_t pid, parse_pid(words[1]));
    out->ooms.push_back(pid);
    return Status::ok();
  }
  if (words.size() != 3) return invalid("three words are wanted, not {}", words.size());
  if (words[0] == "drop" || words[0] == "hold") {
    out->drops.push_back({words[1], words[2], words[0] == "hold"});
    return Status::ok();
  }
  if (words[0] != "die" && words[0] != "start")
    return invalid("'{}' is not known; there are: hold, drop, die, oom, start", words[0]);
  FLUX_ASSIGN_OR_RETURN(const KillOrder order, parse_kill_order(words[2]));
  if (words[0] == "start") {
    out->starts.push_back({words[1], order});
    return Status::ok();
  }
  FLUX_ASSIGN_OR_RETURN(const int64_t pid, parse_pid(words[1]));
  out->dies.push_back({pid, order});
  return Status::ok();
}

}  // namespace

Faults::Way Faults::way(const std::vector<std::string>& from,
                        const std::vector<std::string>& to) const {
  Way way = Way::kOpen;
  for (const Drop& drop : drops) {
    if (!names(drop.from, from) || !names(drop.to, to)) continue;
    if (!drop.held) return Way::kDropped;
    way = Way::kHeld;
  }
  return way;
}

Result<Faults> parse_faults(std::string_view text) {
  Faults faults;
  size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    std::istringstream in(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    if (words.empty() || words[0].starts_with('#')) continue;
    const Status parsed = parse_line(words, &faults);
    if (!parsed.is_ok()) return parsed.with_context(fmt::format("line {}", number));
  }
  return faults;
}

std::string faults_text(const Faults& faults) {
  const auto order = [](const KillOrder& o) {
    return fmt::format("{}:{}", kill_point_name(o.point), o.pass);
  };
  std::string out;
  for (const Faults::Drop& d : faults.drops)
    out += fmt::format("{} {} {}\n", d.held ? "hold" : "drop", d.from, d.to);
  for (const Faults::Die& d : faults.dies) out += fmt::format("die {} {}\n", d.pid, order(d.order));
  for (const int64_t pid : faults.ooms) out += fmt::format("oom {}\n", pid);
  for (const Faults::Start& s : faults.starts)
    out += fmt::format("start {} {}\n", s.name, order(s.order));
  return out;
}

const Faults& FaultFile::at(TimeNs now) {
  if (now < next_) return faults_;
  next_ = now + kLookEvery;
  struct stat found {};
  if (::stat(path_.c_str(), &found) != 0) {
    faults_ = {};
    stamp_[0] = 0;
    return faults_;
  }
  const int64_t stamp[3] = {static_cast<int64_t>(found.st_ino),
                            found.st_mtim.tv_sec * kSecond + found.st_mtim.tv_nsec, found.st_size};
  if (std::equal(stamp, stamp + 3, stamp_)) return faults_;
  std::ifstream file(path_, std::ios::binary);
  std::string text(kBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  auto parsed = parse_faults(text);
  if (!parsed.is_ok()) return faults_;
  faults_ = std::move(parsed).value();
  std::copy(stamp, stamp + 3, stamp_);
  return faults_;
}

std::vector<std::string> names_of_peer(const std::string& name_or_address) {
  std::vector<std::string> out = {name_or_address};
  std::string name = name_or_address;
  if (name.starts_with("unix:")) {
    name = name.substr(name.rfind('/') + 1);
    out.push_back(name);
  } else if (name.starts_with("tcp:")) {
    return out;
  }
  const size_t dash = name.rfind('-');
  if (dash != std::string::npos) out.push_back(name.substr(0, dash));
  return out;
}

}  // namespace flux
