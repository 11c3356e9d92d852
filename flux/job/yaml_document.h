// YamlDocument: the text of a job file as a tree of nodes that know where they were written.
//
// The only file that sees yaml-cpp: its exceptions and zero-based marks end here. Adds what
// yaml-cpp does not check: repeated fields, encoding, size, depth and number of nodes. Aliases are
// copied in, within the same limits.
// Threads: none; nodes are values. Failure: problems with line and column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flux/job/problems.h"

namespace flux {

constexpr size_t kJobBytesMax = 1U << 20;
constexpr size_t kYamlDepthMax = 32;
constexpr size_t kYamlNodesMax = 100'000;  // aliases counted as often as they are used

struct YamlEntry;

struct YamlNode {
  enum class Kind : unsigned char { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;  // a scalar in quotes or of block style: text, never a number
  std::string text;     // of a scalar
  Origin origin;
  std::vector<YamlNode> items;     // of a list
  std::vector<YamlEntry> entries;  // of a map, in the order of the file, names unique

  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_null() const { return kind == Kind::kNull; }
  YamlEntry* find(std::string_view name);
  const YamlEntry* find(std::string_view name) const;
};

struct YamlEntry {
  std::string name;
  Origin origin;  // of the name
  YamlNode value;
};

// Parses one document. False, with a problem added, if there is no tree to go on with; repeated
// fields are problems too, but parsing goes on (with the first).
bool parse_yaml(std::string_view text, Problems* problems, YamlNode* root);

// "a list", "a map", "empty", "'text'": what a node is, for messages.
std::string describe_node(const YamlNode& node);

}  // namespace flux
