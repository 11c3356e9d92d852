// The schema of a job file: one table of fields, each with its place in Job, its type, range and
// sentence. Checking, messages, the JSON Schema and the reference page all walk this table; the
// defaults are those of the structs themselves.
//
// A Field reaches its member through slot(), given the object that its Section describes.
// Threads: immutable once built, shared by all. Nothing fails.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "flux/job/job.h"
#include "flux/job/value.h"

namespace flux {

// A Job while its file is being read.
struct JobDraft {
  Job job;
  std::vector<std::string> train;  // data.train, which becomes a pass
};

// Where the value of a field is kept.
using Slot = std::variant<std::string*, uint32_t*, uint64_t*, float*, double*, bool*,
                          std::optional<float>*, std::optional<bool>*, std::vector<std::string>*,
                          std::vector<double>*, std::vector<NodeSpec>*, void*>;

struct Section;

struct Field {
  std::string name;
  std::string doc;                     // one sentence
  ValueSpec spec;                      // unless it has a section or is the list of layers
  std::function<Slot(void*)> slot;     // member of the section's object; void* for a section's own
  const Section* section = nullptr;    // fields of the map, or of each map in the list
  std::function<void*(void*)> append;  // for a list of maps: a new element of the object's list
  bool required = false;
  bool layers = false;            // model.layers, which operators describe
  std::string default_note;       // in words, where the default is no fixed value
  std::vector<std::string> also;  // names that people try for it

  bool is_list() const { return append != nullptr; }
  bool is_value() const { return section == nullptr && !layers; }

  Field& between(double min, double max);
  Field& above(double min, double max);  // min itself is refused
  Field& below(double min, double max);  // max itself is refused
  Field& one_of(std::vector<std::string> choices);
  Field& a_name();
  Field& not_empty();
  Field& or_empty_text();
  Field& needed();
  Field& tried_as(std::vector<std::string> names);
  Field& defaults_to(std::string text);
};

// The fields of one map.
struct Section {
  std::string doc;
  std::vector<Field> fields;

  const Field* find(std::string_view name) const;
  std::vector<std::string> names() const;

  // get is a function from Object& to a member of it.
  template <typename Object, typename Get>
  Field& value(std::string name, Get get, std::string doc) {
    Field& field = add(std::move(name), std::move(doc));
    field.slot = [get](void* object) -> Slot { return &get(*static_cast<Object*>(object)); };
    using Member = std::remove_reference_t<std::invoke_result_t<Get, Object&>>;
    set_type(&field, Member{});
    return field;
  }
  template <typename Object, typename Get>
  Field& map(std::string name, const Section* section, Get get, std::string doc) {
    Field& field = add(std::move(name), std::move(doc));
    field.section = section;
    field.slot = [get](void* object) -> Slot {
      return static_cast<void*>(&get(*static_cast<Object*>(object)));
    };
    return field;
  }
  template <typename Object, typename Get>
  Field& list(std::string name, const Section* section, Get get, std::string doc) {
    Field& field = add(std::move(name), std::move(doc));
    field.section = section;
    field.append = [get](void* object) -> void* {
      return &get(*static_cast<Object*>(object)).emplace_back();
    };
    return field;
  }

 private:
  Field& add(std::string name, std::string doc);
  static void set_type(Field* field, const std::string&);
  static void set_type(Field* field, uint32_t);
  static void set_type(Field* field, uint64_t);
  static void set_type(Field* field, float);
  static void set_type(Field* field, double);
  static void set_type(Field* field, bool);
  static void set_type(Field* field, const std::optional<float>&);
  static void set_type(Field* field, const std::optional<bool>&);
  static void set_type(Field* field, const std::vector<std::string>&);
  static void set_type(Field* field, const std::vector<double>&);
  static void set_type(Field* field, const std::vector<NodeSpec>&);
};

// The whole file; its object is a JobDraft.
const Section& job_section();
// Parts of it: objects JobDraft, OptimizerOptions and LrScheduleOptions.
const Section& data_section();
const Section& optimizer_section();
const Section& lr_schedule_section();
const Section& stop_section();  // StopOptions

// Names of what the data offers to a model.
std::vector<std::string> model_sources(const DataOptions& data);

void store(const Value& value, const Slot& slot);
// The default of a value field as YAML writes it, read from a default object; "" if it has no
// fixed one.
std::string default_text(const Field& field, void* object);

}  // namespace flux
