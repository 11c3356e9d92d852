#include "flux/main/restarts.h"

#include <algorithm>

namespace flux {
namespace {

// Notes a death; how many were in the window before it.
size_t note(std::deque<TimeNs>* deaths, TimeNs window, TimeNs now) {
  while (!deaths->empty() && now - deaths->front() > window) deaths->pop_front();
  deaths->push_back(now);
  return deaths->size() - 1;
}

}  // namespace

std::optional<TimeNs> Restarts::died(TimeNs now) {
  const size_t before = note(&deaths_, options_.window_ns, now);
  if (before >= options_.deaths_max) return std::nullopt;
  return now + static_cast<TimeNs>(before) * options_.pause_ns;
}

bool Restarts::out_of_memory(TimeNs now) {
  return note(&memory_deaths_, options_.memory_window_ns, now) < options_.memory_deaths_max;
}

WorkerShare WorkerShare::half() const {
  if (in_flight > 1) return {in_flight / 2, threads};
  return {in_flight, std::max(1U, threads / 2)};
}

}  // namespace flux
