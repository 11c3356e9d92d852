// What this CPU can do, asked once at run time; kernels are chosen by it.
// Pure questions without failure; safe from every thread.
#pragma once

namespace flux {
bool cpu_has_avx512();        // F, BW, DQ and VL
bool cpu_has_avx512_vbmi2();  // implies cpu_has_avx512()
bool cpu_has_avx512_bf16();   // implies cpu_has_avx512()
// Tile registers that multiply bf16, which the system lets this process use; implies
// cpu_has_avx512_bf16().
bool cpu_has_amx_bf16();
// True when the CPU runs the x86-64-v3 code this binary is made of.
bool cpu_has_baseline();
}  // namespace flux
