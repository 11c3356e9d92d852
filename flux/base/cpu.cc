#include "flux/base/cpu.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flux/base/check.h"
#include "flux/base/text.h"

namespace flux {
namespace {

const std::vector<std::string>& names() {
  static const std::vector<std::string> kNames = {"avx2", "avx512", "bf16", "amx"};
  return kNames;
}

std::atomic<Isa> cap = Isa::kAmx;
std::atomic<bool> asked = false;

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

Isa find_isa() {
  asked = true;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (cap < Isa::kAvx512 || !avx512) return Isa::kAvx2;
  if (cap < Isa::kBf16 || !__builtin_cpu_supports("avx512bf16")) return Isa::kAvx512;
  return cap < Isa::kAmx || !has_amx_bf16() ? Isa::kBf16 : Isa::kAmx;
}

}  // namespace

Status cap_isa(std::string_view name) {
  if (name.empty()) return Status::ok();
  const auto at = std::find(names().begin(), names().end(), name);
  if (at == names().end())
    return invalid("instruction set '{}' is unknown{}; allowed: {}", name,
                   did_you_mean(std::string(name), names()), join(names(), ", "));
  FLUX_CHECK(!asked, "the instruction set is capped after kernels were chosen");
  cap = static_cast<Isa>(at - names().begin());
  return Status::ok();
}

Isa isa() {
  static const Isa found = find_isa();
  return found;
}
const char* isa_name() {
  return names()[static_cast<size_t>(isa())].c_str();
}

bool cpu_has_avx512() {
  return isa() >= Isa::kAvx512;
}
bool cpu_has_avx512_vbmi2() {
  return cpu_has_avx512() && __builtin_cpu_supports("avx512vbmi2");
}
bool cpu_has_avx512_bf16() {
  return isa() >= Isa::kBf16;
}
bool cpu_has_amx_bf16() {
  return isa() >= Isa::kAmx;
}
bool cpu_has_baseline() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}

}  // namespace flux
