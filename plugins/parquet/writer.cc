#include "plugins/parquet/writer.h"

#include <algorithm>

#include <arrow/io/file.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/column_writer.h>
#include <parquet/exception.h>

namespace flux::parquet_plugin {
namespace {

using ::parquet::LogicalType;
using ::parquet::Repetition;
using ::parquet::schema::GroupNode;
using ::parquet::schema::NodePtr;
using ::parquet::schema::PrimitiveNode;

NodePtr leaf_node(const std::string& name, As as) {
  if (as == As::kNumbers)
    return PrimitiveNode::Make(name, Repetition::REQUIRED, LogicalType::None(),
                               ::parquet::Type::FLOAT);
  return PrimitiveNode::Make(name, Repetition::REQUIRED, LogicalType::Int(64, false),
                             ::parquet::Type::INT64);
}

NodePtr node_of(const NewColumn& column) {
  if (!column.many) return leaf_node(column.name, column.as);
  const NodePtr repeated =
      GroupNode::Make("list", Repetition::REPEATED, {leaf_node("element", column.as)});
  return GroupNode::Make(column.name, Repetition::REQUIRED, {repeated}, LogicalType::List());
}

// A list of n values has n levels, an empty one has one; both kinds of level are 0 or 1.
void list_levels(const uint32_t* begin, uint64_t rows, std::vector<int16_t>* def,
                 std::vector<int16_t>* rep) {
  def->clear();
  rep->clear();
  for (uint64_t row = 0; row < rows; ++row) {
    const uint32_t count = begin[row + 1] - begin[row];
    def->insert(def->end(), std::max(count, 1U), count == 0 ? 0 : 1);
    rep->push_back(0);
    if (count > 1) rep->insert(rep->end(), count - 1, 1);
  }
}

}  // namespace

FileWriter::FileWriter(const std::string& path, const NewColumn* columns, uint32_t count) {
  ::parquet::schema::NodeVector fields;
  for (uint32_t i = 0; i < count; ++i) {
    fields.push_back(node_of(columns[i]));
    columns_.push_back({columns[i].as, columns[i].many});
  }
  const auto root =
      std::static_pointer_cast<GroupNode>(GroupNode::Make("schema", Repetition::REQUIRED, fields));
  PARQUET_ASSIGN_OR_THROW(out_, ::arrow::io::FileOutputStream::Open(path));
  ::parquet::WriterProperties::Builder properties;
  properties.compression(::parquet::Compression::ZSTD)->enable_page_checksum();
  file_ = ::parquet::ParquetFileWriter::Open(
      out_, root, properties.build(), ::arrow::KeyValueMetadata::Make({kOwnNote}, {"of tables"}));
}

void FileWriter::write(uint64_t rows, const Values* values) {
  ::parquet::RowGroupWriter* group = file_->AppendRowGroup();
  for (size_t i = 0; i < columns_.size(); ++i) {
    ::parquet::ColumnWriter* column = group->NextColumn();
    auto levels = static_cast<int64_t>(rows);
    const int16_t *def = nullptr, *rep = nullptr;
    if (columns_[i].many) {
      list_levels(values[i].begin, rows, &def_, &rep_);
      levels = static_cast<int64_t>(def_.size());
      def = def_.data();
      rep = rep_.data();
    }
    if (columns_[i].as == As::kNumbers)
      static_cast<::parquet::FloatWriter*>(column)->WriteBatch(levels, def, rep, values[i].numbers);
    else
      static_cast<::parquet::Int64Writer*>(column)->WriteBatch(
          levels, def, rep, reinterpret_cast<const int64_t*>(values[i].keys));
    column->Close();
  }
  group->Close();
}

void FileWriter::finish() {
  file_->Close();
  PARQUET_THROW_NOT_OK(out_->Close());
}

}  // namespace flux::parquet_plugin
