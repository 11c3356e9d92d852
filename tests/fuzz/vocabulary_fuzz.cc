// Vocabulary files: a refusal names the file; what is loaded has words and counts that fit, and is
// the same again when it is written.
// links: data storage base
#include <string>

#include "flux/data/vocabulary.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const flux::MemoryFile memory(data, size);
  const auto loaded = flux::Vocabulary::load(memory.path());
  if (!loaded.is_ok()) {
    if (loaded.status().message().find(memory.path()) == std::string::npos) __builtin_trap();
    return 0;
  }
  const flux::Vocabulary& words = loaded.value();
  uint64_t total = 0;
  for (const uint64_t count : words.counts) total += count;
  if (words.words.size() != words.counts.size() || total != words.total) __builtin_trap();
  const std::string text = words.to_text();
  const flux::MemoryFile written(text.data(), text.size());
  const auto again = flux::Vocabulary::load(written.path());
  if (!again.is_ok() || again.value().words != words.words || again.value().counts != words.counts)
    __builtin_trap();
  return 0;
}
