// EventLines: what `flux run --json` prints, one JSON object per line, on standard output.
//
// Every object has "event" (its kind) and "time_s" (seconds since 1970); docs/using/events.md lists
// the kinds and their fields. Off: nothing is printed. Threads: one.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "flux/base/status.h"

namespace flux {

double wall_clock_s();  // seconds since 1970

class EventLines {
 public:
  explicit EventLines(bool on) : on_(on) {}
  bool on() const { return on_; }
  void emit(const char* event, const nlohmann::ordered_json& fields) const;
  void message(const std::string& text) const { emit("message", {{"text", text}}); }
  void error(const Status& status) const;

 private:
  bool on_;
};

}  // namespace flux
