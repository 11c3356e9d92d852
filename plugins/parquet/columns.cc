#include "plugins/parquet/columns.h"

#include <parquet/types.h>

namespace flux::parquet_plugin {
namespace {

using ::parquet::ConvertedType;
using ::parquet::LogicalType;
using ::parquet::Type;

bool is_list(const ::parquet::schema::Node& node) {
  return node.is_group() && (node.converted_type() == ConvertedType::LIST ||
                             (node.logical_type() != nullptr && node.logical_type()->is_list()));
}

// "int64", "string (timestamp ...)"
std::string type_text(const ::parquet::ColumnDescriptor& leaf) {
  std::string out = ::parquet::TypeToString(leaf.physical_type());
  const auto& logical = leaf.logical_type();
  if (logical != nullptr && logical->is_valid() && !logical->is_none())
    out += " (" + logical->ToString() + ")";
  return out;
}

void find_kind(const ::parquet::ColumnDescriptor& leaf, FoundColumn* out) {
  const auto& logical = leaf.logical_type();
  const bool plain = logical == nullptr || !logical->is_valid() || logical->is_none();
  switch (leaf.physical_type()) {
    case Type::BOOLEAN:
      out->kind = Kind::kWhole;
      break;
    case Type::INT32:
    case Type::INT64:
      if (plain || logical->is_int()) out->kind = Kind::kWhole;
      out->is_unsigned = !plain && logical->is_int() &&
                         !static_cast<const ::parquet::IntLogicalType&>(*logical).is_signed();
      break;
    case Type::FLOAT:
    case Type::DOUBLE:
      out->kind = Kind::kReal;
      break;
    case Type::BYTE_ARRAY:
      if (plain || logical->is_string() || logical->is_enum()) out->kind = Kind::kText;
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<FoundColumn> find_columns(const ::parquet::SchemaDescriptor& schema) {
  std::vector<FoundColumn> out;
  const ::parquet::schema::GroupNode& root = *schema.group_node();
  std::vector<int> leaves(static_cast<size_t>(root.field_count()), 0), last(leaves);
  for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
    const int field = root.FieldIndex(*schema.GetColumnRoot(leaf));
    if (field < 0) continue;
    ++leaves[static_cast<size_t>(field)];
    last[static_cast<size_t>(field)] = leaf;
  }
  for (int field = 0; field < root.field_count(); ++field) {
    const ::parquet::schema::Node& node = *root.field(field);
    FoundColumn column;
    column.name = node.name();
    const auto at = static_cast<size_t>(field);
    if (leaves[at] == 1 && (node.is_primitive() || is_list(node))) {
      const ::parquet::ColumnDescriptor& leaf = *schema.Column(last[at]);
      column.many = leaf.max_repetition_level() > 0;
      column.leaf = last[at];
      if (leaf.max_repetition_level() <= 1) find_kind(leaf, &column);
      column.type = (column.many ? "list of " : "") + type_text(leaf);
      if (leaf.max_repetition_level() > 1) column.type = "list of lists";
    } else {
      column.type = "group of " + std::to_string(leaves[at]) + " columns";
    }
    out.push_back(std::move(column));
  }
  return out;
}

}  // namespace flux::parquet_plugin
