// Lines of sentences: whatever the bytes, the words of the vocabulary that a second reader finds in
// them, in their order, and as many negatives as the job says; or a refusal that names the line.
// The first byte chooses the job.
// links: data storage base
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "flux/data/vocabulary.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/read_all.h"

namespace {

constexpr std::array<std::string_view, 4> kWords = {"a", "bb", "na\xc3\xafve", "|x:1"};
constexpr std::string_view kVocabulary = "a 900\nbb 50\nna\xc3\xafve 2\n|x:1 1\n";

using Keys = std::vector<uint64_t>;

bool is_known(uint64_t key) {
  return std::any_of(kWords.begin(), kWords.end(),
                     [key](std::string_view word) { return flux::word_key(word) == key; });
}

// The known words of a line, by looking at it from each of its places.
Keys plain_words(const std::string& line) {
  const std::string blanks = " \t\r\n";
  Keys out;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = line.find_first_not_of(blanks, at);
    if (begin == std::string::npos) break;
    const size_t end = std::min(line.find_first_of(blanks, begin), line.size());
    const uint64_t key = flux::word_key(line.substr(begin, end - begin));
    if (is_known(key)) out.push_back(key);
    at = end;
  }
  return out;
}

std::vector<Keys> plain_lines(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  std::vector<Keys> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(plain_words(text.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// Both are in the order of the line; of a subsampled line some may be missing.
bool is_part(const Keys& some, const Keys& all) {
  size_t found = 0;
  for (const uint64_t key : all) found += found < some.size() && some[found] == key ? 1 : 0;
  return found == some.size();
}

void check(const flux::Batch& batch, const flux::DataOptions& options,
           const std::vector<Keys>& lines, size_t first) {
  if (batch.slots != 2 || first + batch.size > lines.size()) __builtin_trap();
  for (size_t i = 0; i < batch.size; ++i) {
    const auto* begin = batch.begin.data() + 2 * i;
    const Keys kept(batch.keys.data() + begin[0], batch.keys.data() + begin[1]);
    const Keys& all = lines[first + i];
    if (options.subsample == 0 ? kept != all : !is_part(kept, all)) __builtin_trap();
    if (begin[2] - begin[1] != options.negatives) __builtin_trap();
    for (size_t n = begin[1]; n < begin[2]; ++n)
      if (!is_known(batch.keys[n])) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const flux::MemoryFile vocabulary(kVocabulary.data(), kVocabulary.size());
  if (size == 0) return 0;
  flux::DataOptions options;
  options.format = "sentences";
  options.vocabulary = vocabulary.path();
  options.shuffle = false;
  options.batch_size = 1 + (data[0] & 7);
  options.negatives = (data[0] >> 3) & 3;
  options.subsample = (data[0] & 32) != 0 ? 0.01 : 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  // What is packed has its own target (packed_fuzz.cc).
  if (text.starts_with("\x1f\x8b") || text.starts_with("\x28\xb5\x2f\xfd")) return 0;
  const flux::MemoryFile memory(text.data(), text.size());
  const std::vector<Keys> lines = plain_lines(text);
  std::vector<flux::Batch> batches;
  if (!flux::read_all(memory.path(), options,
                      [&](const flux::Batch& batch) { batches.push_back(batch); }))
    return 0;
  size_t first = 0;
  for (const flux::Batch& batch : batches) {
    check(batch, options, lines, first);
    first += batch.size;
  }
  // So many lines lie in blocks that are all read.
  if (lines.size() <= 64 && first != lines.size()) __builtin_trap();
  return 0;
}
