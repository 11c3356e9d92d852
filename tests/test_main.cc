// main() of all test programs: GoogleTest's, after FLUX_ISA has said what of this CPU may be used.
//
// Why not gtest_main and an initialiser beside it: tests are chosen by what the CPU has when
// GoogleTest starts, so the cap must stand before that, and the order of initialisers is no order.
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "flux/base/cpu.h"

int main(int argc, char** argv) {
  const char* wish = std::getenv("FLUX_ISA");
  const flux::Status capped = flux::cap_isa(wish != nullptr ? wish : "");
  if (!capped.is_ok()) {
    std::fprintf(stderr, "FLUX_ISA: %s\n", capped.message().c_str());
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  // tools/test.sh reads it. Last, since a test of the cap wants that nobody has asked before.
  std::printf("instruction set: %s\n", flux::isa_name());
  return result;
}
