#include "flux/main/role_log.h"

#include <cerrno>
#include <chrono>
#include <ctime>

#include "flux/base/text.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr size_t kLinesMax = 1000;

std::string stamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return fmt::format("{}.{:03}", text, ms % 1000);
}

}  // namespace

RoleLog::~RoleLog() {
  if (file_ != nullptr) std::fclose(file_);
}

Status RoleLog::open(const std::string& path) {
  FLUX_RETURN_IF_ERROR(make_folders(parent_folder(path)));
  file_ = std::fopen(path.c_str(), "ae");
  return file_ != nullptr ? Status::ok() : errno_status("cannot open " + path, errno);
}

void RoleLog::say(const std::string& text) {
  const std::lock_guard lock(mutex_);
  for (const std::string& part : split(text, '\n')) {
    std::string line = fmt::format("{} {}: {}\n", stamp(), role_, part);
    if (to_stdout_) {
      std::fputs(line.c_str(), stdout);
      std::fflush(stdout);
    }
    if (file_ != nullptr) {
      std::fputs(line.c_str(), file_);
      std::fflush(file_);
    }
    lines_.push_back(std::move(line));
    if (lines_.size() > kLinesMax) lines_.pop_front();
  }
}

std::string RoleLog::latest() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& line : lines_) text += line;
  return text;
}

std::string reason_in_log(const std::string& text) {
  std::string last, said;
  for (std::string line : split(text, '\n')) {
    if (line.ends_with('\r')) line.pop_back();  // ssh ends its own lines so
    if (line.empty()) continue;
    if (line.starts_with("flux: ")) said = line;
    last = std::move(line);
  }
  return said.empty() ? last : said;
}

}  // namespace flux
