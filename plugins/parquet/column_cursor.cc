#include "plugins/parquet/column_cursor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include <parquet/exception.h>

#include "plugins/parquet/entries.h"
#include "plugins/parquet/flat_pages.h"

namespace flux::parquet_plugin {
namespace {

constexpr int64_t kLevels = 32 << 10;        // read at once
constexpr size_t kValuesMax = 1 << 25;       // of one column in one read
constexpr size_t kListMax = 1 << 20;         // values of one row, nulls too
constexpr int64_t kStreamedRows = 32 << 10;  // of a long turn, whose values go past the caches
constexpr int64_t kRoomRows = 128 << 10;     // that there is room for before they were seen
constexpr double kFloatMax = std::numeric_limits<float>::max();

// `Type`: of the file (parquet::Int64Type ...); `Out`: uint64_t or float.
template <typename Type, typename Out>
class TypedCursor final : public ColumnCursor {
 public:
  using T = typename Type::c_type;

  TypedCursor(const FoundColumn& column, const ::parquet::ColumnDescriptor& leaf,
              ::arrow::MemoryPool* pool, DictionaryMemory* dictionaries, HashText hash)
      : unsigned_(column.is_unsigned),
        many_(column.many),
        most_def_(leaf.max_definition_level()),
        leaf_(&leaf),
        pool_(pool),
        dictionaries_(dictionaries),
        hash_(hash) {}

  void seek(std::unique_ptr<::parquet::PageReader> pages, int64_t row) override {
    if (!many_) {
      pages_ = std::make_unique<FlatPages<Type>>(std::move(pages), leaf_, pool_);
      pass_over(row);
      return;
    }
    reader_ = std::static_pointer_cast<::parquet::TypedColumnReader<Type>>(
        ::parquet::ColumnReader::Make(leaf_, std::move(pages), pool_));
    fetched_ = taken_ = 0;
    values_taken_ = values_pending_ = 0;
    const size_t before = size_, rows_before = rows_;
    for (int64_t left = row; left > 0; left -= kLevels) {
      read_lists(std::min(left, kLevels));
      size_ = before;
      rows_ = rows_before;
      forget_large();
    }
  }

  void read_into(ColumnMemory* memory, int64_t rows) override {
    memory_ = memory;
    size_ = rows_ = 0;
    counted_ = false;
    streamed_ = rows >= kStreamedRows;
    forget_large();
    if (many_) begin_counting(0);
    room(many_ ? 0 : std::min(rows, kRoomRows));
  }

  void read(int64_t rows) override {
    if (many_)
      read_lists(rows);
    else if (most_def_ == 0)
      read_required(rows);
    else
      read_optional(rows);
  }

  Values values() const override {
    return {memory_->keys.data(), memory_->numbers.data(),
            counted_ ? memory_->begin.data() : nullptr, memory_->large.data(),
            memory_->large.size()};
  }

 private:
  [[noreturn]] static void short_column() {
    throw ::parquet::ParquetException("a column has fewer values than its row group has rows");
  }

  [[noreturn]] static void long_list() {
    throw ::parquet::ParquetException("a list of more than 2^20 values");
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

  // `to` is where the values behind those that are there go.
  void convert_all(const T* from, size_t count, Out* to) {
    for (size_t i = 0; i < count; ++i) to[i] = convert(from[i]);
    if constexpr (kMayBeLarge) {
      bool large = false;
      for (size_t i = 0; i < count; ++i) large |= std::abs(from[i]) > kFloatMax;
      for (size_t i = 0; large && i < count; ++i)
        if (std::isinf(to[i])) memory_->large.push_back({size_ + i, from[i]});
    }
  }
  // Those that do not count any more.
  void forget_large() {
    std::vector<LargeNumber>& large = memory_->large;
    while (!large.empty() && large.back().place >= size_) large.pop_back();
  }

  // Whether the file has the bits that are wanted: they are read where they belong.
  static constexpr bool kSameBits = (std::is_same_v<T, int64_t> && std::is_same_v<Out, uint64_t>) ||
                                    (std::is_same_v<T, float> && std::is_same_v<Out, float>);

  static constexpr bool kMayBeLarge = std::is_same_v<T, double> && std::is_same_v<Out, float>;

  // Room for `more` values behind those that are there, and the spare ones.
  Out* room(int64_t more) {
    Room<Out>* out = nullptr;
    if constexpr (std::is_same_v<Out, float>)
      out = &memory_->numbers;
    else
      out = &memory_->keys;
    const size_t size = size_ + static_cast<size_t>(more) + kSpareValues;
    if (size > kValuesMax + kSpareValues)
      throw ::parquet::ParquetException(
          "more than 2^25 values in the records of one block (take a smaller data.batch)");
    const size_t wanted = size_ == 0 ? size : std::max(size, 2 * out->size());
    if (out->size() < size) out->grow(std::min(wanted, kValuesMax + kSpareValues), size_);
    return out->data() + size_;
  }

  // Room for the ends of `more` rows.
  uint32_t* room_for_ends(int64_t more) {
    const size_t size = rows_ + static_cast<size_t>(more) + 1;
    if (memory_->begin.size() < size) memory_->begin.resize(std::max(size, 2 * rows_));
    return memory_->begin.data() + rows_ + 1;
  }

  // From here on `begin` is filled; the `rows` rows so far have a value each.
  void begin_counting(size_t rows) {
    counted_ = true;
    rows_ = 0;
    uint32_t* const ends = room_for_ends(static_cast<int64_t>(rows));
    std::iota(ends - 1, ends + rows, 0U);
    rows_ = rows;
  }

  // Whether a level of a column without lists is there that was not taken.
  bool more_rows() {
    while (pages_->left() == 0) {
      const auto next = pages_->next_page();
      if (next == FlatPages<Type>::Next::kEnd) return false;
      if (next == FlatPages<Type>::Next::kDictionary) convert_dictionary();
    }
    return true;
  }

  // What is made of a value is made of each entry of the dictionary, once.
  void convert_dictionary() {
    const auto size = static_cast<size_t>(pages_->left());
    auto* const to =
        reinterpret_cast<Out*>(dictionaries_->take(static_cast<int64_t>(size * sizeof(Out))));
    entries_ = to;
    entries_size_ = size;
    large_entries_.clear();
    if (scratch_.size() < kLevels) scratch_.resize(kLevels);
    for (size_t done = 0; done < size;) {
      const int64_t some = pages_->take_values_of_dictionary(kLevels, scratch());
      for (int64_t i = 0; i < some; ++i, ++done) {
        to[done] = convert(scratch()[i]);
        if constexpr (kMayBeLarge)
          if (std::abs(scratch()[i]) > kFloatMax)
            large_entries_.push_back({done, static_cast<double>(scratch()[i])});
      }
    }
  }

  // Reads at most `most` levels of a column without lists, its values behind those that are there.
  int64_t append(int64_t most, int64_t* values) {
    if (!more_rows()) short_column();
    const int64_t levels = std::min(most, pages_->left());
    *values = pages_->take_levels(levels, levels_of(levels, &def_));
    Out* const to = room(*values);
    if (pages_->indexed()) {
      look_up(static_cast<size_t>(*values), to);
    } else if constexpr (kSameBits) {
      pages_->read_values(*values, reinterpret_cast<T*>(to));
    } else {
      if (scratch_.size() < static_cast<size_t>(*values))
        scratch_.resize(static_cast<size_t>(*values));
      pages_->read_values(*values, scratch());
      convert_all(scratch(), static_cast<size_t>(*values), to);
    }
    size_ += static_cast<size_t>(*values);
    return levels;
  }

  void look_up(size_t count, Out* to) {
    fetch_entries(std::span(entries_, entries_size_), count);
    for (size_t done = 0; done < count;) {
      const std::span<const uint32_t> indices = pages_->indices()->next(count - done);
      uint32_t most = 0;
      for (const uint32_t index : indices) most = std::max(most, index);
      if (most >= entries_size_)
        throw ::parquet::ParquetException("an index that the dictionary does not have");
      if (streamed_)
        stream_entries(entries_, indices, to + done);
      else
        put_entries(entries_, indices, to + done);
      if (!large_entries_.empty()) note_large(indices, size_ + done);
      done += indices.size();
    }
    if (streamed_) end_stream();
  }

  // `place`: of the first of them.
  void note_large(std::span<const uint32_t> indices, size_t place) {
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto at = std::lower_bound(
          large_entries_.begin(), large_entries_.end(), indices[i],
          [](const LargeNumber& entry, uint32_t index) { return entry.place < index; });
      if (at != large_entries_.end() && at->place == indices[i])
        memory_->large.push_back({place + i, at->number});
    }
  }

  // The next `rows` rows of a column without lists; whole pages are not decoded.
  void pass_over(int64_t rows) {
    const size_t before = size_;
    while (rows > 0) {
      if (!more_rows()) short_column();
      if (pages_->left() <= rows) {
        rows -= pages_->left();
        pages_->pass_page();
        continue;
      }
      int64_t values = 0;
      rows -= append(std::min(rows, kLevels), &values);
      size_ = before;
      forget_large();
    }
  }

  // Room for definition levels, where the column has any.
  int16_t* levels_of(int64_t most, std::vector<int16_t>* levels) const {
    if (most_def_ == 0) return nullptr;
    if (levels->size() < static_cast<size_t>(most)) levels->resize(static_cast<size_t>(most));
    return levels->data();
  }

  // Levels into def_ and rep_, values into scratch_; the number of levels.
  int64_t fetch(int64_t most, int64_t* values) {
    const auto size = static_cast<size_t>(most);
    if (scratch_.size() < size) scratch_.resize(size);
    return reader_->ReadBatch(most, levels_of(most, &def_),
                              many_ ? levels_of(most, &rep_) : nullptr, scratch(), values);
  }
  T* scratch() { return reinterpret_cast<T*>(scratch_.data()); }

  void read_required(int64_t rows) {
    for (int64_t values = 0; rows > 0;) rows -= append(std::min(rows, kLevels), &values);
  }

  void read_optional(int64_t rows) {
    while (rows > 0) {
      const size_t before = size_;
      int64_t values = 0;
      const int64_t levels = append(std::min(rows, kLevels), &values);
      rows -= levels;
      if (values == levels && !counted_) continue;
      if (!counted_) begin_counting(before);  // the first null
      uint32_t* const ends = room_for_ends(levels);
      auto at = static_cast<uint32_t>(before);
      if (values == levels) std::iota(ends, ends + levels, at + 1);
      for (int64_t i = 0; values < levels && i < levels; ++i) {
        at += def_[static_cast<size_t>(i)] == most_def_ ? 1 : 0;
        ends[i] = at;
      }
      rows_ += static_cast<size_t>(levels);
    }
  }

  // Whether a level is there that was not taken.
  bool more_levels() {
    if (taken_ < fetched_) return true;
    put_pending();
    int64_t values = 0;
    taken_ = 0;
    values_taken_ = 0;
    fetched_ = fetch(kLevels, &values);
    return fetched_ > 0;
  }

  // A row ends where the next begins, which is seen only there, or with the column.
  void read_lists(int64_t rows) {
    if (rows <= 0) return;
    uint32_t* ends = room_for_ends(rows);
    rows_ += static_cast<size_t>(rows);
    if (!more_levels()) short_column();
    if (rep_[static_cast<size_t>(taken_)] != 0)
      throw ::parquet::ParquetException("a row begins within a list");
    values_pending_ += def_[static_cast<size_t>(taken_++)] == most_def_ ? 1 : 0;
    for (size_t levels = 1; rows > 0;) {  // of the row that has not ended
      if (!more_levels()) {
        if (rows > 1) short_column();
        *ends = static_cast<uint32_t>(size_);
        return;
      }
      const int64_t some = std::min(rows, fetched_ - taken_);
      const int64_t ended = take_levels(some, ends);
      levels = static_cast<size_t>(some) + (ended > 0 ? 0 : levels);
      if (levels > kListMax + kLevels) long_list();  // no row less than that began before
      ends += ended;
      rows -= ended;
      // The last level begins a row behind the last.
      if (rows == 0) values_pending_ -= def_[static_cast<size_t>(--taken_)] == most_def_ ? 1 : 0;
    }
    put_pending();
  }

  // Takes `levels` levels, not more than the rows that are still wanted: none of them begins more
  // than one. Returns how many rows ended before a level, and where to `ends`.
  int64_t take_levels(int64_t levels, uint32_t* ends) {
    const int16_t* const rep = rep_.data() + taken_;
    const int16_t* const def = def_.data() + taken_;
    const size_t first = size_ + values_pending_;
    taken_ += levels;
    int16_t unlike = 0;  // a level that is not a row with one value
    for (int64_t i = 0; i < levels; ++i)
      unlike = static_cast<int16_t>(unlike | rep[i] | (def[i] ^ most_def_));
    if (unlike == 0) {
      std::iota(ends, ends + levels, static_cast<uint32_t>(first));
      values_pending_ += static_cast<size_t>(levels);
      return levels;
    }
    int64_t ended = 0;
    size_t at = first;
    for (int64_t i = 0; i < levels; ++i) {
      ends[ended] = static_cast<uint32_t>(at);
      ended += rep[i] == 0 ? 1 : 0;
      at += def[i] == most_def_ ? 1 : 0;
    }
    values_pending_ += at - first;
    return ended;
  }

  // The values of the levels that were taken, behind those that are there.
  void put_pending() {
    if (values_pending_ == 0) return;
    Out* to = room(static_cast<int64_t>(values_pending_));
    convert_all(scratch() + values_taken_, values_pending_, to);
    size_ += values_pending_;
    values_taken_ += values_pending_;
    values_pending_ = 0;
  }

  using Scratch =
      std::conditional_t<std::is_same_v<T, bool>, std::vector<unsigned char>, std::vector<T>>;

  const bool unsigned_, many_;
  const int16_t most_def_;
  const ::parquet::ColumnDescriptor* const leaf_;
  ::arrow::MemoryPool* const pool_;
  DictionaryMemory* const dictionaries_;
  const HashText hash_;
  std::unique_ptr<FlatPages<Type>> pages_;  // of a column without lists
  const Out* entries_ = nullptr;            // of its dictionary, converted
  size_t entries_size_ = 0;
  std::vector<LargeNumber> large_entries_;                      // of those, by their places
  std::shared_ptr<::parquet::TypedColumnReader<Type>> reader_;  // of lists
  std::vector<int16_t> def_, rep_;
  Scratch scratch_;
  int64_t fetched_ = 0, taken_ = 0;  // levels of lists
  size_t values_taken_ = 0;          // of scratch_
  size_t values_pending_ = 0;        // behind those: their levels are taken, they are not
  ColumnMemory* memory_ = nullptr;
  bool streamed_ = false;  // what is looked up goes past the caches
  size_t size_ = 0;        // values in memory_
  bool counted_ = false;   // `begin` is filled
  size_t rows_ = 0;        // in `begin`
};

template <typename Type>
std::unique_ptr<ColumnCursor> typed(const FoundColumn& column,
                                    const ::parquet::ColumnDescriptor& leaf, As as,
                                    ::arrow::MemoryPool* pool, DictionaryMemory* dictionaries,
                                    HashText hash) {
  if (as == As::kKeys)
    return std::make_unique<TypedCursor<Type, uint64_t>>(column, leaf, pool, dictionaries, hash);
  return std::make_unique<TypedCursor<Type, float>>(column, leaf, pool, dictionaries, hash);
}

}  // namespace

std::unique_ptr<ColumnCursor> make_cursor(const FoundColumn& column,
                                          const ::parquet::ColumnDescriptor& leaf, As as,
                                          ::arrow::MemoryPool* pool, DictionaryMemory* dictionaries,
                                          HashText hash) {
  switch (leaf.physical_type()) {
    case ::parquet::Type::BOOLEAN:
      return typed<::parquet::BooleanType>(column, leaf, as, pool, dictionaries, hash);
    case ::parquet::Type::INT32:
      return typed<::parquet::Int32Type>(column, leaf, as, pool, dictionaries, hash);
    case ::parquet::Type::INT64:
      return typed<::parquet::Int64Type>(column, leaf, as, pool, dictionaries, hash);
    case ::parquet::Type::FLOAT:
      return typed<::parquet::FloatType>(column, leaf, as, pool, dictionaries, hash);
    case ::parquet::Type::DOUBLE:
      return typed<::parquet::DoubleType>(column, leaf, as, pool, dictionaries, hash);
    case ::parquet::Type::BYTE_ARRAY:
      return typed<::parquet::ByteArrayType>(column, leaf, as, pool, dictionaries, hash);
    default:
      throw ::parquet::ParquetException("a column of a type that is not read");
  }
}

}  // namespace flux::parquet_plugin
