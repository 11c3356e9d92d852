// Parquet files: whatever a file says of itself, reading all of its records ends, in a Status or in
// batches that are whole. Does nothing where the plug-in is not beside the program.
// links: data storage base
#include <string>

#include "flux/data/parquet/plugin.h"
#include "flux/data/tools/guess_format.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!flux::load_parquet_plugin().is_ok()) return 0;
  const flux::MemoryFile memory(data, size);
  std::string note;
  auto options = flux::guess_data_options(memory.path(), &note);
  if (!options.is_ok()) flux::expect_named(options.status(), memory.path());
  if (!options.is_ok() || options.value().format != "parquet") return 0;
  options.value().batch_size = 3;
  for (const bool shuffle : {false, true}) {
    options.value().shuffle = shuffle;
    flux::read_all(memory.path(), options.value(), [](const flux::Batch&) {});
  }
  return 0;
}
