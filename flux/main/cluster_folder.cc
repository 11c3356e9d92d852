#include "flux/main/cluster_folder.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <random>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr uint64_t kRecordMax = 64 << 10;
constexpr uint64_t kSecretMax = 4096;

Status make_private_folder(const std::string& path) {
  FLUX_RETURN_IF_ERROR(make_folders(path));
  if (::chmod(path.c_str(), 0700) != 0) return errno_status("cannot protect " + path, errno);
  return Status::ok();
}

}  // namespace

std::string new_secret() {
  std::random_device device;
  std::string out;
  for (int i = 0; i < 4; ++i) out += fmt::format("{:08x}", device());
  return out;
}

Result<std::string> read_secret(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno_status(path, errno);
  if ((info.st_mode & 077) != 0)
    return invalid("{}: others may read this secret; protect it: chmod 600 {}", path, path);
  FLUX_ASSIGN_OR_RETURN(std::string text, read_whole_file(path, kSecretMax));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < 16) return invalid("{}: a secret has at least 16 characters", path);
  return text;
}

ClusterFolder::ClusterFolder(const std::string& output) : path_(join_path(output, "cluster")) {}

std::string ClusterFolder::logs() const {
  return join_path(path_, "logs");
}
std::string ClusterFolder::log_of(const std::string& role) const {
  return join_path(logs(), role + ".log");
}
std::string ClusterFolder::sockets() const {
  return join_path(path_, "sockets");
}
std::string ClusterFolder::token_file() const {
  return join_path(path_, kClusterToken);
}
std::string ClusterFolder::faults_file() const {
  return join_path(path_, "faults.txt");
}

Status ClusterFolder::make() const {
  FLUX_RETURN_IF_ERROR(make_folders(logs()));
  return make_private_folder(sockets());
}

Status ClusterFolder::write_record(const CoordinatorRecord& record) const {
  nlohmann::ordered_json json;
  json["pid"] = record.pid;
  json["supervisor"] = record.supervisor;
  json["host"] = record.host;
  json["listen"] = record.listen;
  json["http"] = record.http;
  json["certificates"] = record.certificates;
  json["command"] = record.command;
  FLUX_RETURN_IF_ERROR(make_folders(path_));
  return write_file_atomic(
      join_path(path_, "coordinator.json"),
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

Result<CoordinatorRecord> ClusterFolder::read_record() const {
  const std::string path = join_path(path_, "coordinator.json");
  FLUX_ASSIGN_OR_RETURN(const std::string text, read_whole_file(path, kRecordMax));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return error(Code::kCorrupt, "{}: no JSON object", path);
  CoordinatorRecord record;
  const auto number = [&](const char* name) {
    return json.contains(name) && json[name].is_number_integer() ? json[name].get<int64_t>() : 0;
  };
  const auto word = [&](const char* name) {
    return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
  };
  record.pid = number("pid");
  record.supervisor = number("supervisor");
  record.host = word("host");
  record.listen = word("listen");
  record.http = word("http");
  record.certificates = word("certificates");
  record.command = word("command");
  return record;
}

std::string ClusterFolder::wanted_file() const {
  return join_path(path_, "wanted.json");
}

Status ClusterFolder::write_wanted(const WantedRoles& wanted) const {
  nlohmann::json json = nlohmann::json::object();
  if (wanted.workers) json["workers"] = *wanted.workers;
  if (wanted.servers) json["servers"] = *wanted.servers;
  json["orders"] = wanted.orders;
  json["ending"] = wanted.ending;
  json["lost"] = wanted.lost;
  json["leaving"] = wanted.leaving;
  const std::string path = wanted_file() + ".tmp";
  std::ofstream file(path, std::ios::trunc);
  file << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  file.close();
  if (file.fail()) return errno_status("cannot write " + path, errno);
  if (::rename(path.c_str(), wanted_file().c_str()) != 0)
    return errno_status("cannot write " + wanted_file(), errno);
  return Status::ok();
}

Result<WantedRoles> ClusterFolder::read_wanted() const {
  FLUX_ASSIGN_OR_RETURN(const std::string text, read_whole_file(wanted_file(), kRecordMax));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return error(Code::kCorrupt, "{}: no JSON object", wanted_file());
  WantedRoles wanted;
  const auto number = [&](const char* name, std::optional<uint32_t>* to) {
    if (!json.contains(name) || !json[name].is_number_unsigned()) return;
    const auto value = json[name].get<uint64_t>();
    if (value >= 1 && value <= kWantedMax) *to = static_cast<uint32_t>(value);
  };
  number("workers", &wanted.workers);
  number("servers", &wanted.servers);
  if (json.contains("orders") && json["orders"].is_number_unsigned())
    wanted.orders = json["orders"].get<uint64_t>();
  wanted.ending = json.contains("ending") && json["ending"] == true;
  const auto processes = [&](const char* key, std::map<std::string, uint32_t>* to) {
    if (!json.contains(key) || !json[key].is_object()) return;
    for (const auto& [name, pid] : json[key].items())
      if (pid.is_number_unsigned()) (*to)[name] = pid.get<uint32_t>();
  };
  processes("lost", &wanted.lost);
  processes("leaving", &wanted.leaving);
  return wanted;
}

void ClusterFolder::remove_record() const {
  ::unlink(join_path(path_, "coordinator.json").c_str());
}

Result<std::string> ClusterFolder::make_secret(const char* name) const {
  FLUX_RETURN_IF_ERROR(make_folders(path_));
  const std::string path = join_path(path_, name);
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno_status("cannot create " + path, errno);
  const std::string secret = new_secret();
  const std::string line = secret + "\n";
  const bool written = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int reason = errno;
  ::close(fd);
  if (!written) return errno_status("cannot write " + path, reason);
  return secret;
}

Result<std::string> ClusterFolder::admin_token() const {
  return read_secret(join_path(path_, kAdminToken));
}

Result<std::vector<std::string>> ClusterFolder::roles() const {
  FLUX_ASSIGN_OR_RETURN(const auto files, read_folder(logs()));
  std::vector<std::string> names;
  for (const std::string& name : files)
    if (name.ends_with(".log")) names.push_back(name.substr(0, name.size() - 4));
  return names;
}

}  // namespace flux
