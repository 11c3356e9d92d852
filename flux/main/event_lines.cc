#include "flux/main/event_lines.h"

#include <chrono>
#include <cstdio>

namespace flux {

double wall_clock_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void EventLines::emit(const char* event, const nlohmann::ordered_json& fields) const {
  if (!on_) return;
  nlohmann::ordered_json line = {{"event", event}, {"time_s", wall_clock_s()}};
  line.update(fields);
  // Texts may quote bytes of files: a line stays JSON whatever they are.
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void EventLines::error(const Status& status) const {
  emit("error", {{"code", code_name(status.code())}, {"message", status.message()}});
}

}  // namespace flux
