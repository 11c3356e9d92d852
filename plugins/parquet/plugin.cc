// flux_parquet.so: Parquet files behind the table of plugin_api.h. Exceptions stop here.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <arrow/io/file.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include "plugins/parquet/bounded_pool.h"
#include "plugins/parquet/column_cursor.h"
#include "plugins/parquet/columns.h"
#include "plugins/parquet/writer.h"
#include "plugins/parquet/zstd_pages.h"

namespace flux::parquet_plugin {

struct File {
  std::string path;
  std::shared_ptr<::parquet::FileMetaData> meta;
  std::vector<FoundColumn> columns;
};

struct Memory {
  HugePages pages;
  std::vector<ColumnMemory> columns;
};

// Of the pages that a cursor has at once, of all columns.
constexpr int64_t kPagesBytesMax = 256 << 20;

struct Cursor {
  BoundedPool pool{kPagesBytesMax};
  DictionaryMemory dictionaries{&pool};
  std::shared_ptr<::arrow::io::RandomAccessFile> source;
  std::unique_ptr<::parquet::ParquetFileReader> reader;
  std::vector<std::unique_ptr<ColumnCursor>> columns;
  std::vector<int> leaves;         // of each column
  std::vector<std::string> names;  // the same
  ZstdDecoder decoder = make_zstd_decoder();
  std::shared_ptr<::parquet::RowGroupReader> group;
  int next_group = 0;
  int64_t left = 0;    // rows of `group`
  Memory passed_over;  // rows before the first that is wanted
};

struct Writer {
  FileWriter file;
};

namespace {

// What `work` returns, or `failed` and the text of its exception.
template <typename Work, typename T>
T guarded(char* error, T failed, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    std::snprintf(error, kErrorBytes, "no memory is left");
  } catch (const std::exception& problem) {
    std::snprintf(error, kErrorBytes, "%s", problem.what());
  } catch (...) {
    std::snprintf(error, kErrorBytes, "an unknown failure of Arrow");
  }
  return failed;
}

// What `work` does with a column; its exception names the column.
template <typename Work>
void of_column(const std::string& name, const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& problem) {
    throw ::parquet::ParquetException("column '" + name + "': " + problem.what());
  }
}

// Not a whole column of a row group is read at once, but so much of each of the file's `columns`.
::parquet::ReaderProperties properties(::arrow::MemoryPool* pool, size_t columns) {
  constexpr size_t kAll = 16 << 20, kLeast = 16 << 10, kMost = 64 << 10;
  ::parquet::ReaderProperties out(pool);
  out.set_page_checksum_verification(true);
  out.enable_buffered_stream();
  const size_t each = std::clamp(kAll / std::max<size_t>(1, columns), kLeast, kMost);
  out.set_buffer_size(static_cast<int64_t>(each));
  return out;
}

File* open(const char* path, char* error) {
  return guarded(error, static_cast<File*>(nullptr), [&] {
    const auto reader = ::parquet::ParquetFileReader::OpenFile(
        path, false, properties(::arrow::system_memory_pool(), 0));
    auto out = std::make_unique<File>();
    out->path = path;
    out->meta = reader->metadata();
    out->columns = find_columns(*out->meta->schema());
    return out.release();
  });
}

void close(File* file) {
  delete file;
}

uint64_t rows(const File* file) {
  return static_cast<uint64_t>(file->meta->num_rows());
}

uint32_t groups(const File* file) {
  return static_cast<uint32_t>(file->meta->num_row_groups());
}

uint64_t group_rows(const File* file, uint32_t group) {
  return static_cast<uint64_t>(file->meta->RowGroup(static_cast<int>(group))->num_rows());
}

uint32_t columns(const File* file) {
  return static_cast<uint32_t>(file->columns.size());
}

Column column(const File* file, uint32_t index) {
  const FoundColumn& found = file->columns[index];
  return {found.name.c_str(), found.type.c_str(), found.kind, found.many};
}

bool is_own(const File* file) {
  const auto& notes = file->meta->key_value_metadata();
  return notes != nullptr && notes->Contains(kOwnNote);
}

void read_into(Memory* memory, Cursor* cursor, int64_t rows) {
  while (memory->columns.size() < cursor->columns.size())
    memory->columns.emplace_back(&memory->pages);
  for (size_t i = 0; i < cursor->columns.size(); ++i)
    cursor->columns[i]->read_into(&memory->columns[i], rows);
}

// Opens the next row group; rows before `row` of it are passed over.
void next_group(Cursor* cursor, int64_t row) {
  if (cursor->next_group >= cursor->reader->metadata()->num_row_groups())
    throw ::parquet::ParquetException("the file has fewer rows than its head says");
  cursor->group = cursor->reader->RowGroup(cursor->next_group++);
  cursor->dictionaries.clear();
  cursor->left = cursor->group->metadata()->num_rows() - row;
  for (size_t i = 0; i < cursor->columns.size(); ++i)
    of_column(cursor->names[i], [&] {
      cursor->columns[i]->seek(
          open_pages(cursor->group.get(), cursor->leaves[i], cursor->source,
                     properties(&cursor->pool, cursor->columns.size()), cursor->decoder),
          row);
    });
}

Cursor* start(File* file, const Wanted* wanted, uint32_t count, uint64_t row, HashText hash,
              char* error) {
  return guarded(error, static_cast<Cursor*>(nullptr), [&] {
    auto out = std::make_unique<Cursor>();
    PARQUET_ASSIGN_OR_THROW(out->source, ::arrow::io::ReadableFile::Open(file->path));
    out->reader =
        ::parquet::ParquetFileReader::Open(out->source, properties(&out->pool, count), file->meta);
    for (uint32_t i = 0; i < count; ++i) {
      const FoundColumn& found = file->columns[wanted[i].column];
      out->leaves.push_back(found.leaf);
      out->names.push_back(found.name);
      out->columns.push_back(make_cursor(found, *file->meta->schema()->Column(found.leaf),
                                         wanted[i].as, &out->pool, &out->dictionaries, hash));
    }
    auto left = static_cast<int64_t>(row);
    const int all = file->meta->num_row_groups();
    while (out->next_group < all && left >= file->meta->RowGroup(out->next_group)->num_rows())
      left -= file->meta->RowGroup(out->next_group++)->num_rows();
    read_into(&out->passed_over, out.get(), 0);
    if (out->next_group < all) next_group(out.get(), left);
    return out.release();
  });
}

bool read(Cursor* cursor, uint64_t rows, Memory* memory, Values* out, char* error) {
  return guarded(error, false, [&] {
    read_into(memory, cursor, static_cast<int64_t>(rows));
    for (auto left = static_cast<int64_t>(rows); left > 0;) {
      while (cursor->left <= 0) next_group(cursor, 0);
      const int64_t some = std::min(left, cursor->left);
      for (size_t i = 0; i < cursor->columns.size(); ++i)
        of_column(cursor->names[i], [&] { cursor->columns[i]->read(some); });
      cursor->left -= some;
      left -= some;
    }
    for (size_t i = 0; i < cursor->columns.size(); ++i) out[i] = cursor->columns[i]->values();
    return true;
  });
}

void end(Cursor* cursor) {
  delete cursor;
}

Memory* make_memory() {
  return new (std::nothrow) Memory;
}

void free_memory(Memory* memory) {
  delete memory;
}

Writer* create(const char* path, const NewColumn* columns, uint32_t count, char* error) {
  return guarded(error, static_cast<Writer*>(nullptr),
                 [&] { return new Writer{FileWriter(path, columns, count)}; });
}

bool write(Writer* writer, uint64_t rows, const Values* values, char* error) {
  return guarded(error, false, [&] {
    writer->file.write(rows, values);
    return true;
  });
}

bool finish(Writer* writer, char* error) {
  return guarded(error, false, [&] {
    writer->file.finish();
    return true;
  });
}

void destroy(Writer* writer) {
  delete writer;
}

constexpr Api kApi = {kVersion,    open,        close,  rows,  groups, group_rows,
                      columns,     column,      is_own, start, read,   end,
                      make_memory, free_memory, create, write, finish, destroy};

}  // namespace
}  // namespace flux::parquet_plugin

extern "C" __attribute__((visibility("default"))) const flux::parquet_plugin::Api*
flux_parquet_plugin() {
  return &flux::parquet_plugin::kApi;
}
