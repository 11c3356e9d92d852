#include "plugins/parquet/column_cursor.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <parquet/exception.h>

namespace flux::parquet_plugin {
namespace {

constexpr int64_t kLevels = 16 << 10;      // read at once
constexpr int64_t kValuesMax = 1LL << 31;  // of one column in one read

// `Type`: of the file (parquet::Int64Type ...); `Out`: uint64_t or float.
template <typename Type, typename Out>
class TypedCursor final : public ColumnCursor {
 public:
  using T = typename Type::c_type;

  TypedCursor(const FoundColumn& column, const ::parquet::ColumnDescriptor& leaf, HashText hash)
      : leaf_(column.leaf),
        unsigned_(column.is_unsigned),
        many_(column.many),
        most_def_(leaf.max_definition_level()),
        hash_(hash) {}

  void seek(::parquet::RowGroupReader* group, int64_t row) override {
    reader_ = std::static_pointer_cast<::parquet::TypedColumnReader<Type>>(group->Column(leaf_));
    fetched_ = taken_ = 0;
    values_taken_ = 0;
    if (many_) {
      const size_t before = out_.size(), rows_before = ends_.size();
      for (int64_t left = row; left > 0; left -= kLevels) {
        read_lists(std::min(left, kLevels));
        out_.resize(before);
        ends_.resize(rows_before);
      }
    } else if (reader_->Skip(row) != row) {
      short_column();
    }
  }

  void clear() override {
    out_.clear();
    ends_.clear();
    gaps_ = many_;
  }

  void read(int64_t rows) override {
    if (many_)
      read_lists(rows);
    else if (most_def_ == 0)
      read_required(rows);
    else
      read_optional(rows);
    if (static_cast<int64_t>(out_.size()) > kValuesMax)
      throw ::parquet::ParquetException("more than 2^31 values at once");
  }

  Values values() override {
    Values out{nullptr, nullptr, gaps_ ? ends_.data() : nullptr};
    if constexpr (std::is_same_v<Out, float>)
      out.numbers = out_.data();
    else
      out.keys = out_.data();
    return out;
  }

 private:
  [[noreturn]] static void short_column() {
    throw ::parquet::ParquetException("a column has fewer values than its row group has rows");
  }

  Out convert(const T& value) const {
    if constexpr (std::is_same_v<T, ::parquet::ByteArray>) {
      return static_cast<Out>(hash_(reinterpret_cast<const char*>(value.ptr), value.len));
    } else if constexpr (std::is_same_v<Out, uint64_t>) {
      if constexpr (std::is_same_v<T, int32_t>)
        return unsigned_ ? static_cast<uint32_t>(value)
                         : static_cast<uint64_t>(static_cast<int64_t>(value));
      return static_cast<uint64_t>(value);
    } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, int32_t>) {
      using U = std::make_unsigned_t<T>;
      return unsigned_ ? static_cast<float>(static_cast<U>(value)) : static_cast<float>(value);
    } else {
      return static_cast<float>(value);
    }
  }

  void append(const T* values, int64_t count) {
    const size_t at = out_.size();
    out_.resize(at + static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) out_[at + static_cast<size_t>(i)] = convert(values[i]);
  }

  // Levels into def_ and rep_, values into scratch_; the number of levels.
  int64_t fetch(int64_t most, int64_t* values) {
    const auto size = static_cast<size_t>(most);
    if (scratch_.size() < size) scratch_.resize(size);
    if (def_.size() < size) def_.resize(size);
    if (many_ && rep_.size() < size) rep_.resize(size);
    return reader_->ReadBatch(most, most_def_ > 0 ? def_.data() : nullptr,
                              many_ ? rep_.data() : nullptr, scratch(), values);
  }
  T* scratch() { return reinterpret_cast<T*>(scratch_.data()); }

  void read_required(int64_t rows) {
    while (rows > 0) {
      int64_t values = 0;
      if constexpr (std::is_same_v<T, int64_t> && std::is_same_v<Out, uint64_t>) {
        const size_t at = out_.size();  // the same bits: read where they belong
        out_.resize(at + static_cast<size_t>(rows));
        const int64_t levels = reader_->ReadBatch(
            rows, nullptr, nullptr, reinterpret_cast<int64_t*>(out_.data() + at), &values);
        if (levels <= 0) short_column();
        out_.resize(at + static_cast<size_t>(values));
        rows -= levels;
      } else {
        const int64_t levels = fetch(std::min(rows, kLevels), &values);
        if (levels <= 0) short_column();
        append(scratch(), values);
        rows -= levels;
      }
    }
  }

  void read_optional(int64_t rows) {
    while (rows > 0) {
      int64_t values = 0;
      const int64_t levels = fetch(std::min(rows, kLevels), &values);
      if (levels <= 0) short_column();
      const size_t before = out_.size();
      append(scratch(), values);
      rows -= levels;
      if (values == levels && !gaps_) continue;
      if (!gaps_) {  // the first null: rows so far have one each
        gaps_ = true;
        for (size_t i = 0; i < before; ++i) ends_.push_back(static_cast<uint32_t>(i + 1));
      }
      auto at = static_cast<uint32_t>(before);
      for (int64_t i = 0; i < levels; ++i) {
        at += def_[static_cast<size_t>(i)] == most_def_ ? 1 : 0;
        ends_.push_back(at);
      }
    }
  }

  // Whether a level is there that was not taken.
  bool more_levels() {
    if (taken_ < fetched_) return true;
    int64_t values = 0;
    taken_ = 0;
    values_taken_ = 0;
    fetched_ = fetch(kLevels, &values);
    return fetched_ > 0;
  }

  // A row ends where the next begins, which is seen only there.
  void read_lists(int64_t rows) {
    for (; rows > 0; --rows) {
      if (!more_levels()) short_column();
      if (rep_[static_cast<size_t>(taken_)] != 0)
        throw ::parquet::ParquetException("a row begins within a list");
      do {
        if (def_[static_cast<size_t>(taken_)] == most_def_)
          out_.push_back(convert(scratch()[values_taken_++]));
        ++taken_;
      } while (more_levels() && rep_[static_cast<size_t>(taken_)] != 0);
      ends_.push_back(static_cast<uint32_t>(out_.size()));
    }
  }

  using Scratch =
      std::conditional_t<std::is_same_v<T, bool>, std::vector<unsigned char>, std::vector<T>>;

  const int leaf_;
  const bool unsigned_, many_;
  const int16_t most_def_;
  const HashText hash_;
  std::shared_ptr<::parquet::TypedColumnReader<Type>> reader_;
  std::vector<int16_t> def_, rep_;
  Scratch scratch_;
  int64_t fetched_ = 0, taken_ = 0;  // levels of lists
  int64_t values_taken_ = 0;
  std::vector<Out> out_;
  std::vector<uint32_t> ends_;
  bool gaps_ = false;  // ends_ counts
};

template <typename Type>
std::unique_ptr<ColumnCursor> typed(const FoundColumn& column,
                                    const ::parquet::ColumnDescriptor& leaf, As as, HashText hash) {
  if (as == As::kKeys) return std::make_unique<TypedCursor<Type, uint64_t>>(column, leaf, hash);
  return std::make_unique<TypedCursor<Type, float>>(column, leaf, hash);
}

}  // namespace

std::unique_ptr<ColumnCursor> make_cursor(const FoundColumn& column,
                                          const ::parquet::ColumnDescriptor& leaf, As as,
                                          HashText hash) {
  switch (leaf.physical_type()) {
    case ::parquet::Type::BOOLEAN:
      return typed<::parquet::BooleanType>(column, leaf, as, hash);
    case ::parquet::Type::INT32:
      return typed<::parquet::Int32Type>(column, leaf, as, hash);
    case ::parquet::Type::INT64:
      return typed<::parquet::Int64Type>(column, leaf, as, hash);
    case ::parquet::Type::FLOAT:
      return typed<::parquet::FloatType>(column, leaf, as, hash);
    case ::parquet::Type::DOUBLE:
      return typed<::parquet::DoubleType>(column, leaf, as, hash);
    case ::parquet::Type::BYTE_ARRAY:
      return typed<::parquet::ByteArrayType>(column, leaf, as, hash);
    default:
      throw ::parquet::ParquetException("a column of a type that is not read");
  }
}

}  // namespace flux::parquet_plugin
