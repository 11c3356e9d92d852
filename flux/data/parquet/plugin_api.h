// The border between flux and its Parquet plug-in: a table of C functions, so that neither side has
// to be built with the compiler or the libraries of the other.
//
// flux loads flux_parquet.so when a job names format parquet (plugin.h); the plug-in is in
// plugins/parquet and is the only code that knows Arrow. No exception crosses; a function that can
// fail takes `error`, kErrorBytes long, and leaves a text there.
// Threads: a file may be used by several at once, a cursor and a writer by one at a time.
// Ownership: who opens closes, who makes frees. What a cursor reads lies in the memory that it was
// given, and stays until that is read into again.
#pragma once

#include <cstdint>

namespace flux::parquet_plugin {

constexpr uint32_t kVersion = 3;  // of this table
constexpr uint32_t kErrorBytes = 1024;
constexpr const char* kEntry = "flux_parquet_plugin";  // a function: const Api* ()

struct File;
struct Cursor;
struct Memory;  // of the columns that one read returns
struct Writer;

// What the values of a column are.
enum class Kind : uint32_t { kOther, kWhole, kReal, kText };

struct Column {
  const char* name;  // of the field at the top
  const char* type;  // for people: "list of int64"
  Kind kind;
  bool many;  // a list: any number of values in a row
};

// What is made of the values.
enum class As : uint32_t {
  kKeys,     // uint64_t: whole numbers (negative ones as their 64 bits), or hashes of texts
  kNumbers,  // float
};

struct Wanted {
  uint32_t column;
  As as;
};

using HashText = uint64_t (*)(const char* text, uint64_t size);

// A number of the file that is too large for a float: the one at `place` of those that were read.
struct LargeNumber {
  uint64_t place;
  double number;
};

// The values of some rows, one row's behind the other's. Nulls are left out.
struct Values {
  const uint64_t* keys;
  const float* numbers;
  // Row i has the values from begin[i] on, up to begin[i + 1]; null: value i alone.
  const uint32_t* begin;
  // Those of `numbers` that became infinite, by their places; messages show them.
  const LargeNumber* large = nullptr;
  uint64_t large_count = 0;
};
// Values behind the last of a column that may be read, too, whatever they are.
constexpr uint32_t kSpareValues = 4;

// A column of a file that is written: whole numbers (unsigned) or numbers; one in each row, or
// lists.
struct NewColumn {
  const char* name;
  As as;
  bool many;
};

struct Api {
  uint32_t version;
  File* (*open)(const char* path, char* error);
  void (*close)(File* file);
  uint64_t (*rows)(const File* file);
  uint32_t (*groups)(const File* file);
  uint64_t (*group_rows)(const File* file, uint32_t group);
  uint32_t (*columns)(const File* file);
  Column (*column)(const File* file, uint32_t column);
  // Whether it was written by `create`: its keys are those of tables.
  bool (*is_own)(const File* file);

  // Reads from row `row` on.
  Cursor* (*start)(File* file, const Wanted* wanted, uint32_t count, uint64_t row, HashText hash,
                   char* error);
  // The next `rows` rows, which must be there: one Values for each wanted column. False: failed.
  bool (*read)(Cursor* cursor, uint64_t rows, Memory* memory, Values* out, char* error);
  void (*end)(Cursor* cursor);
  Memory* (*make_memory)();  // for any cursor; null: none is left
  void (*free_memory)(Memory* memory);

  Writer* (*create)(const char* path, const NewColumn* columns, uint32_t count, char* error);
  bool (*write)(Writer* writer, uint64_t rows, const Values* values, char* error);
  // Flushes to the file; without it the file is of no use.
  bool (*finish)(Writer* writer, char* error);
  void (*destroy)(Writer* writer);
};

}  // namespace flux::parquet_plugin
