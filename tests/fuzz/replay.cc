// Runs a fuzz target without a fuzzer: every file of the corpus folders given, and for each some
// hundred small changes of it, always the same ones. Exits with 0, or dies where the target does.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "flux/base/hash.h"
#include "flux/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

// One to four edits: a bit, a byte, a cut, a repeated piece.
std::string bent(std::string bytes, flux::Random* random) {
  for (uint64_t edits = 1 + random->below(4); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = random->below(bytes.size());
    switch (random->below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random->below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random->next());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(random->below(bytes.size()), random->below(80)));
        break;
      default:
        bytes.erase(at, random->below(9));
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kBentEach = 300;
  size_t files = 0;
  run("");
  for (int i = 1; i < argc; ++i) {
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], failed)) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      run(bytes);
      flux::Random random(flux::hash_bytes(bytes));
      for (int j = 0; j < kBentEach; ++j) run(bent(bytes, &random));
      ++files;
    }
    if (failed) std::fprintf(stderr, "%s: %s\n", argv[i], failed.message().c_str());
  }
  std::printf("%zu inputs, %d changes of each\n", files, kBentEach);
  return files > 0 || argc == 1 ? 0 : 1;
}
