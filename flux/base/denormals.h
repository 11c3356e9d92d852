// Numbers below 1.2e-38 count as zero in floats.
//
// Moments of weights that get no gradient any more (a unit that is dead, a rare id) shrink by a
// factor at each step until they are such numbers, which never become zero by themselves, and with
// which every operation is some hundred times slower on x86.
// Threads: for the calling thread and those that it starts from then on.
#pragma once

#include <xmmintrin.h>

namespace flux {

inline void flush_denormals() {
  constexpr unsigned kFlushResults = 0x8000, kTakeInputsAsZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kFlushResults | kTakeInputsAsZero);
}

}  // namespace flux
