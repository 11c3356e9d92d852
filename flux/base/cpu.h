// What this CPU can do, asked at run time; kernels are chosen by it, and by nothing else.
//
// Why a cap: what another CPU would compute with can be run, and tested, on this one. Everything
// that cap_isa() leaves out is missing as if the CPU had never had it. Set it before anybody asks
// (a later call ends the process: kernels are chosen once); who has a main() does, from FLUX_ISA.
// The questions have no failure and are safe from every thread.
#pragma once

#include <string_view>

#include "flux/base/status.h"

namespace flux {

// Each level has those before it.
enum class Isa : unsigned char {
  kAvx2,    // x86-64-v3, which this binary is made of
  kAvx512,  // F, BW, DQ and VL; VBMI2 where the CPU has it
  kBf16,    // AVX512-BF16
  kAmx,     // tile registers that multiply bf16, which the system lets this process use
};

// "avx2", "avx512", "bf16" or "amx"; what the CPU has not is not made up. Empty: no cap.
Status cap_isa(std::string_view name);
// The highest level that is used, and its name.
Isa isa();
const char* isa_name();

bool cpu_has_avx512();
bool cpu_has_avx512_vbmi2();  // implies cpu_has_avx512()
bool cpu_has_avx512_bf16();   // implies cpu_has_avx512()
bool cpu_has_amx_bf16();      // implies cpu_has_avx512_bf16()
// True when the CPU runs the x86-64-v3 code this binary is made of.
bool cpu_has_baseline();

}  // namespace flux
