#include "flux/job/yaml_document.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "flux/job/utf8.h"
#include "flux/job/yaml_errors.h"

namespace flux {
namespace {

Origin origin_of(const YAML::Mark& mark) {
  Origin origin;
  if (mark.line >= 0) origin.line = static_cast<uint32_t>(mark.line) + 1;
  if (mark.column >= 0) origin.column = static_cast<uint32_t>(mark.column) + 1;
  return origin;
}

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& message) {
  throw YAML::ParserException(mark, message);
}

size_t count_nodes(const YamlNode& node) {
  size_t n = 1;
  for (const YamlNode& item : node.items) n += count_nodes(item);
  for (const YamlEntry& entry : node.entries) n += count_nodes(entry.value);
  return n;
}

size_t depth_of(const YamlNode& node) {
  size_t depth = 0;
  for (const YamlNode& item : node.items) depth = std::max(depth, depth_of(item));
  for (const YamlEntry& entry : node.entries) depth = std::max(depth, depth_of(entry.value));
  return depth + 1;
}

// Turns yaml-cpp's events into a tree. Refuses by throwing ParserException, which parse_yaml()
// catches together with yaml-cpp's own.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Problems* problems) : problems_(problems) {}

  YamlNode take_root() { return std::move(root_); }
  // The map or list that was being read when parsing stopped.
  std::optional<Origin> innermost() const {
    return open_.empty() ? std::nullopt : std::optional(open_.back().node.origin);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) refuse(mark, "a second document starts here, but a job file holds one");
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.origin = origin_of(mark);
    const std::string_view rest = rest_of_line(node.origin);
    if (rest.starts_with('~') || rest.starts_with('n') || rest.starts_with('N')) {
      node.origin.length = rest.starts_with('~') ? 1 : 4;
    } else if (!open_.empty()) {
      node.origin = open_.back().has_key ? open_.back().key.origin : open_.back().node.origin;
    }
    finish(mark, anchor, std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.quoted = tag == "!";
    node.text = value;
    node.origin = origin_of(mark);
    skip_anchor(&node.origin);
    node.origin.length = scalar_length(node);
    if (node.quoted && !quote_is_closed(node.origin)) {
      YAML::Mark quote = mark;
      quote.column = static_cast<int>(node.origin.column) - 1;
      refuse(quote, "this quote is never closed");
    }
    finish(mark, anchor, std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(mark, "this alias stands inside its own anchor");
    if (open_.size() + depth_of(found->second) > kYamlDepthMax) refuse_depth(mark);
    nodes_ += count_nodes(found->second);
    finish(mark, 0, found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    YamlNode node;
    bool has_key = false;  // a map whose next node is a value
    YamlEntry key;
    std::unordered_map<std::string, uint32_t> lines;  // of the names seen
  };

  std::string_view rest_of_line(const Origin& origin) const {
    const std::string_view line = problems_->line(origin.line);
    return line.substr(std::min<size_t>(origin.column - 1, line.size()));
  }

  // A node's mark is that of its anchor, if it has one: "&name value".
  void skip_anchor(Origin* origin) const {
    const std::string_view rest = rest_of_line(*origin);
    if (!rest.starts_with('&')) return;
    const size_t value = rest.find_first_not_of(" \t", rest.find_first_of(" \t"));
    if (value != std::string_view::npos) origin->column += static_cast<uint32_t>(value);
  }

  uint32_t scalar_length(const YamlNode& node) const {
    const std::string_view rest = rest_of_line(node.origin);
    if (!node.quoted) {
      return static_cast<uint32_t>(std::max<size_t>(1, std::min(node.text.size(), rest.size())));
    }
    if (!rest.starts_with('"') && !rest.starts_with('\'')) return 1;
    const size_t close = rest.find(rest[0], 1);
    return static_cast<uint32_t>(close == std::string_view::npos ? rest.size() : close + 1);
  }

  // yaml-cpp takes the end of the file for a closing quote.
  bool quote_is_closed(const Origin& origin) const {
    std::string_view rest = rest_of_line(origin);
    if (!rest.starts_with('"') && !rest.starts_with('\'')) return true;  // a block scalar
    const char quote = rest[0];
    rest.remove_prefix(1);
    for (uint32_t line = origin.line; line <= problems_->line_count();
         rest = problems_->line(++line)) {
      for (size_t i = 0; i < rest.size(); ++i) {
        if (quote == '"' && rest[i] == '\\') {
          ++i;
        } else if (rest[i] == quote) {
          if (quote == '"' || !rest.substr(i + 1).starts_with(quote)) return true;
          ++i;
        }
      }
    }
    return false;
  }

  // Whether the bracket that begins here is closed before the line ends.
  bool closes_in_line(const Origin& origin) const {
    int depth = 0;
    for (const char c : rest_of_line(origin)) {
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return true;
    }
    return depth == 0;
  }

  static void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    refuse(mark, "tags are not supported here; write the value alone");
  }
  [[noreturn]] static void refuse_depth(const YAML::Mark& mark) {
    refuse(mark, fmt::format("nested deeper than {} levels", kYamlDepthMax));
  }

  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YamlNode::Kind kind) {
    check_tag(mark, tag);
    if (open_.size() >= kYamlDepthMax) refuse_depth(mark);
    if (!open_.empty() && open_.back().node.is_map() && !open_.back().has_key) {
      refuse(mark,
             closes_in_line(origin_of(mark)) ? "a field's name must be plain text" : kOpenBracket);
    }
    Open open;
    open.mark = mark;
    open.anchor = anchor;
    open.node.kind = kind;
    open.node.origin = origin_of(mark);
    open_.push_back(std::move(open));
  }

  void end() {
    Open open = std::move(open_.back());
    open_.pop_back();
    finish(open.mark, open.anchor, std::move(open.node));
  }

  // A node is complete: it becomes a name, a value, an item or the root.
  void finish(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode node) {
    if (++nodes_ > kYamlNodesMax) {
      refuse(mark, fmt::format("more than {} values", kYamlNodesMax));
    }
    if (anchor != 0) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.is_list()) {
      open_.back().node.items.push_back(std::move(node));
    } else if (open_.back().has_key) {
      finish_entry(std::move(node));
    } else {
      finish_name(mark, std::move(node));
    }
  }

  void finish_name(const YAML::Mark& mark, YamlNode node) {
    if (!node.is_scalar() || node.text.empty()) refuse(mark, "a field's name must be plain text");
    if (node.text == "<<" && !node.quoted) refuse(mark, "merging maps with '<<' is not supported");
    Open& open = open_.back();
    open.key.name = std::move(node.text);
    open.key.origin = node.origin;
    open.has_key = true;
  }

  void finish_entry(YamlNode value) {
    Open& open = open_.back();
    open.has_key = false;
    const auto [seen, is_new] = open.lines.emplace(open.key.name, open.key.origin.line);
    if (is_new) {
      open.node.entries.push_back({std::move(open.key.name), open.key.origin, std::move(value)});
    } else {
      problems_->add(open.key.origin,
                     fmt::format("field '{}' is given twice", shorten(open.key.name)),
                     fmt::format("first in line {}; remove one of them", seen->second));
    }
  }

  Problems* problems_;
  YamlNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  size_t nodes_ = 0;
  bool started_ = false;
};

void add_syntax_problem(const YAML::Exception& e, const TreeBuilder& builder, Problems* problems) {
  Origin origin = origin_of(e.mark);
  const size_t columns = problems->line(origin.line).size() + 1;
  origin.column = static_cast<uint32_t>(std::min<size_t>(origin.column, columns));
  SyntaxError error = explain_yaml_error(e.msg);
  const std::string_view line = problems->line(origin.line);
  const size_t tab = line.substr(0, line.find_first_not_of(" \t")).find('\t');
  if (tab != std::string_view::npos) {
    error = explain_yaml_error(YAML::ErrorMsg::TAB_IN_INDENTATION);
    origin.column = static_cast<uint32_t>(tab) + 1;
  }
  const std::optional<Origin> opening = builder.innermost();
  if (!error.at_opening.empty() && opening && opening->line < origin.line) {
    error.message = error.at_opening;
    origin = *opening;
  }
  problems->add(origin, error.message, error.hint);
}

}  // namespace

YamlEntry* YamlNode::find(std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const YamlEntry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

const YamlEntry* YamlNode::find(std::string_view name) const {
  return const_cast<YamlNode*>(this)->find(name);
}

bool parse_yaml(std::string_view text, Problems* problems, YamlNode* root) {
  if (!check_text(text, problems)) return false;
  TreeBuilder builder(problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    add_syntax_problem(e, builder, problems);
    return false;
  }
  *root = builder.take_root();
  return true;
}

std::string describe_node(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "empty";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  return node.quoted ? fmt::format("the text \"{}\"", shorten(node.text))
                     : fmt::format("'{}'", shorten(node.text));
}

}  // namespace flux
