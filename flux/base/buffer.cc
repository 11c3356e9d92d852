#include "flux/base/buffer.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

#include "flux/base/check.h"

namespace flux {
namespace {
constexpr size_t kHugePage = 2U << 20;
size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// As operator new: whoever has set a handler decides how this process ends.
[[noreturn]] void out_of_memory(size_t bytes) {
  if (const std::new_handler handler = std::get_new_handler()) handler();
  check_failed(__FILE__, __LINE__, "memory", fmt::format("out of memory: {} bytes", bytes));
}
}  // namespace

void* allocate_aligned(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes < kHugePage) {
    void* memory = std::aligned_alloc(64, round_up(bytes, 64));
    if (memory == nullptr) out_of_memory(bytes);
    return memory;
  }
  // Over-reserve, then give back both ends, so that the mapping starts on a huge page.
  const size_t size = round_up(bytes, kHugePage);
  auto* raw = static_cast<char*>(mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (raw == MAP_FAILED) out_of_memory(bytes);
  auto* start = reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(raw), kHugePage));
  if (start > raw) munmap(raw, static_cast<size_t>(start - raw));
  const size_t tail = static_cast<size_t>(raw + kHugePage - start);
  if (tail > 0) munmap(start + size, tail);
  madvise(start, size, MADV_HUGEPAGE);
  return start;
}

void free_aligned(void* memory, size_t bytes) {
  if (memory == nullptr) return;
  if (bytes < kHugePage) {
    std::free(memory);
  } else {
    munmap(memory, round_up(bytes, kHugePage));
  }
}

}  // namespace flux
