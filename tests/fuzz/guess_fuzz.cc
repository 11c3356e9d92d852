// What a text file is taken for: whatever the bytes, a guess of one format for all lines is one
// that its parser reads, and a file whose format was guessed is read, or named with what is wrong.
// links: data storage base
#include <algorithm>
#include <string>
#include <vector>

#include "flux/base/text.h"
#include "flux/data/tools/guess_format.h"
#include "flux/data/tools/guess_text.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/read_all.h"

namespace {

constexpr size_t kBytesMax = 4 << 10;  // of text; longer ones only take longer

void guess_lines(const std::string& text) {
  const std::vector<std::string> lines = flux::split(text, '\n');
  for (const auto guess :
       {flux::guess_vw, flux::guess_libffm, flux::guess_libsvm, flux::guess_multislot}) {
    const auto options = guess(lines);
    if (options && !flux::reads_all(*options, lines)) __builtin_trap();
  }
  // Of these a hundredth may be mistakes.
  for (const auto guess : {flux::guess_csv, flux::guess_feasign}) {
    const auto options = guess(lines);
    if (options && options->labels.empty()) __builtin_trap();
    if (options) flux::has_table_keys(*options, lines);
  }
}

void read_guessed(const std::string& path) {
  std::string note;
  auto options = flux::guess_data_options(path, &note);
  if (!options.is_ok()) {
    flux::expect_named(options.status(), path);
    return;
  }
  options.value().batch_size = 3;
  flux::read_all(path, options.value(), [&](const flux::Batch& batch) {
    if (batch.labels.size() != batch.size * options.value().labels.size()) __builtin_trap();
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), std::min(size, kBytesMax));
  if (!text.empty()) guess_lines(text);
  const flux::MemoryFile memory(text.data(), text.size());
  read_guessed(memory.path());
  return 0;
}
