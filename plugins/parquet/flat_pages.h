// FlatPages: the pages of a column without lists, one after the other: which rows are null, and
// the values, or the indices of values in the column's dictionary.
//
// Indices are given as they are, so that what is made of a value is made once for each entry of
// the dictionary. A page that says at its begin that it has no null has no levels decoded.
// Threads: one. Failure: parquet::ParquetException.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <parquet/column_page.h>
#include <parquet/column_reader.h>
#include <parquet/encoding.h>
#include <parquet/exception.h>

#include "plugins/parquet/index_decoder.h"

namespace flux::parquet_plugin {

// Whether levels, as they are packed, begin with a run of `level` for `count` values or more.
bool one_run_of(const uint8_t* data, size_t size, int16_t level, int64_t count);

// Where the parts of a data page are.
struct PageParts {
  const uint8_t* levels = nullptr;  // of definition, as runs; null: in another way
  size_t level_bytes = 0;
  const uint8_t* values = nullptr;
  int value_bytes = 0;
};
// Finds them and readies `levels` to decode, if the column has any.
PageParts split_page(const ::parquet::DataPage& page, int16_t most_def,
                     ::parquet::LevelDecoder* levels);

template <typename Type>
class FlatPages {
 public:
  using T = typename Type::c_type;
  enum class Next { kEnd, kDictionary, kData };

  FlatPages(std::unique_ptr<::parquet::PageReader> pages, const ::parquet::ColumnDescriptor* column,
            ::arrow::MemoryPool* pool)
      : pages_(std::move(pages)),
        column_(column),
        pool_(pool),
        most_def_(column->max_definition_level()) {}

  // Goes to the next page. Of a dictionary all values are read before the next call.
  Next next_page() {
    for (;;) {
      left_ = 0;
      indexed_ = false;
      page_ = pages_->NextPage();
      if (page_ == nullptr) return Next::kEnd;
      switch (page_->type()) {
        case ::parquet::PageType::DICTIONARY_PAGE:
          begin_dictionary(static_cast<const ::parquet::DictionaryPage&>(*page_));
          return Next::kDictionary;
        case ::parquet::PageType::DATA_PAGE:
        case ::parquet::PageType::DATA_PAGE_V2:
          begin_data(static_cast<const ::parquet::DataPage&>(*page_));
          return Next::kData;
        default:
          break;
      }
    }
  }

  // Of a dictionary, at most `most`; how many.
  int64_t take_values_of_dictionary(int64_t most, T* to) {
    const int64_t count = std::min(most, left_);
    read_values(count, to);
    left_ -= count;
    return count;
  }

  // Levels of this page that were not taken (of a dictionary: its values).
  int64_t left() const { return left_; }
  void pass_page() { left_ = 0; }
  // Takes `count` levels, which are left; how many of them have a value. Where all have, `levels`
  // is as it was.
  int64_t take_levels(int64_t count, int16_t* levels) {
    left_ -= count;
    if (all_there_) return count;
    if (levels_.Decode(static_cast<int>(count), levels) != count) damaged("too few levels");
    return std::count(levels, levels + count, most_def_);
  }

  // The values of the levels that were taken are read by one of these.
  bool indexed() const { return indexed_; }
  IndexDecoder* indices() { return &indices_; }
  void read_values(int64_t count, T* to) {
    if (values_->Decode(to, static_cast<int>(count)) != count) damaged("too few values");
  }

 private:
  [[noreturn]] static void damaged(const char* what) {
    throw ::parquet::ParquetException(std::string("a page is damaged: ") + what);
  }

  void begin_dictionary(const ::parquet::DictionaryPage& page) {
    constexpr int32_t kValueBytesMin = 4;  // of each type that has dictionaries
    using ::parquet::Encoding;
    if (page.encoding() != Encoding::PLAIN && page.encoding() != Encoding::PLAIN_DICTIONARY)
      damaged("the encoding of a dictionary");
    if (has_dictionary_) damaged("a second dictionary");
    if (page.num_values() < 0 || page.num_values() > page.size() / kValueBytesMin)
      damaged("a dictionary that is larger than its page");
    begin_values(Encoding::PLAIN, page.num_values(), page.data(), page.size());
    left_ = page.num_values();
    has_dictionary_ = true;
  }

  void begin_data(const ::parquet::DataPage& page) {
    using ::parquet::Encoding;
    if (page.num_values() < 0) damaged("the number of its values");
    const PageParts parts = split_page(page, most_def_, &levels_);
    left_ = page.num_values();
    all_there_ = most_def_ == 0 || (parts.levels != nullptr &&
                                    one_run_of(parts.levels, parts.level_bytes, most_def_, left_));
    indexed_ = page.encoding() == Encoding::RLE_DICTIONARY ||
               page.encoding() == Encoding::PLAIN_DICTIONARY;
    if (!indexed_) {
      begin_values(page.encoding(), page.num_values(), parts.values, parts.value_bytes);
    } else {
      if (!has_dictionary_) damaged("there is no dictionary for it");
      indices_.reset(parts.values, static_cast<size_t>(parts.value_bytes));
    }
  }

  void begin_values(::parquet::Encoding::type encoding, int count, const uint8_t* data, int bytes) {
    if (values_ == nullptr || values_->encoding() != encoding)
      values_ = ::parquet::MakeTypedDecoder<Type>(encoding, column_, pool_);
    values_->SetData(count, data, bytes);
  }

  const std::unique_ptr<::parquet::PageReader> pages_;
  const ::parquet::ColumnDescriptor* const column_;
  ::arrow::MemoryPool* const pool_;
  const int16_t most_def_;
  std::shared_ptr<::parquet::Page> page_;  // what is read lies in it
  ::parquet::LevelDecoder levels_;
  std::unique_ptr<::parquet::TypedDecoder<Type>> values_;
  IndexDecoder indices_;
  int64_t left_ = 0;
  bool all_there_ = false, indexed_ = false, has_dictionary_ = false;
};

}  // namespace flux::parquet_plugin
