#include "flux/base/cpu.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(CpuTest, AnUnknownInstructionSetIsRefusedWithTheAllowedOnes) {
  const Status status = cap_isa("avx51");
  EXPECT_FALSE(status.is_ok());
  EXPECT_NE(status.message().find("instruction set 'avx51' is unknown"), std::string::npos);
  EXPECT_NE(status.message().find("allowed: avx2, avx512, bf16, amx"), std::string::npos);
  EXPECT_TRUE(cap_isa("").is_ok());
}

// 0 if nothing above that level is answered with yes. In a process of its own: one cap each.
int wrong_under(const char* name, Isa level) {
  if (!cap_isa(name).is_ok()) return 2;
  if (isa() > level) return 3;
  if (cpu_has_avx512() != (isa() >= Isa::kAvx512)) return 4;
  if (cpu_has_avx512_vbmi2() && !cpu_has_avx512()) return 5;
  if (cpu_has_avx512_bf16() != (isa() >= Isa::kBf16)) return 6;
  return cpu_has_amx_bf16() != (isa() >= Isa::kAmx) ? 7 : 0;
}

TEST(CpuDeathTest, NothingAboveTheCapIsThere) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // starts this program anew, so nobody has asked
  const auto ends_well = testing::ExitedWithCode(0);
  EXPECT_EXIT(std::exit(wrong_under("avx2", Isa::kAvx2)), ends_well, "");
  EXPECT_EXIT(std::exit(wrong_under("avx512", Isa::kAvx512)), ends_well, "");
  EXPECT_EXIT(std::exit(wrong_under("bf16", Isa::kBf16)), ends_well, "");
  EXPECT_EXIT(std::exit(wrong_under("amx", Isa::kAmx)), ends_well, "");
}

// The last test of this program that asks; a later cap would be a bug.
TEST(CpuDeathTest, ALateCapEndsTheProcess) {
  EXPECT_DEATH(
      {
        (void)isa();
        (void)cap_isa("avx2");
      },
      "after kernels were chosen");
}

}  // namespace
}  // namespace flux
