#include "flux/base/cpu.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace flux {
namespace {

// Linux gives the state of tiles only to who asks for it; for all threads from then on.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx_bf16() {
  constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d & kBf16) != 0 && (d & kTiles) != 0 && may_use_tiles();
}

}  // namespace

bool cpu_has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}
bool cpu_has_avx512_vbmi2() {
  static const bool has = cpu_has_avx512() && __builtin_cpu_supports("avx512vbmi2");
  return has;
}
bool cpu_has_avx512_bf16() {
  static const bool has = cpu_has_avx512() && __builtin_cpu_supports("avx512bf16");
  return has;
}
bool cpu_has_amx_bf16() {
  static const bool has = cpu_has_avx512_bf16() && has_amx_bf16();
  return has;
}
bool cpu_has_baseline() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}
}  // namespace flux
