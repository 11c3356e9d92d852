#include "flux/data/drift.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(Drift, HoursHaveNamesByDay) {
  Drift drift;
  const auto start = parse_start("2024-02-28T22");
  ASSERT_TRUE(start.is_ok()) << start.status().message();
  drift.start = start.value();
  EXPECT_EQ(hour_name(drift, 0), "20240228/22");
  EXPECT_EQ(hour_name(drift, 1), "20240228/23");
  EXPECT_EQ(hour_name(drift, 2), "20240229/00");  // a leap year
  EXPECT_EQ(hour_name(drift, 26), "20240301/00");
  EXPECT_EQ(parse_start("1970-01-01T00").value(), 0);
  EXPECT_EQ(parse_start("2026-01-01T05").value(),
            20454 * 24 + 5);  // date -d 2026-01-01 +%s / 86400
}

TEST(Drift, OtherTextIsNoHour) {
  for (const char* text : {"", "2026-01-01", "2026-01-01T00:00", "2026-01-01 00", "2026-1-1T00",
                           "26-01-01T00xx", "2026-01-01T-1", "2026-x1-01T00"})
    EXPECT_NE(parse_start(text).status().message().find("not an hour of a date"), std::string::npos)
        << text;
  for (const char* text : {"2026-02-29T00", "2026-13-01T00", "2026-00-10T00", "1969-12-31T23"})
    EXPECT_NE(parse_start(text).status().message().find("no such day"), std::string::npos) << text;
  EXPECT_EQ(parse_start("2026-01-01T24").status().message(),
            "--start '2026-01-01T24': hours go from 00 to 23; write it as 2026-01-31T23");
}

TEST(Drift, NumbersOutOfRangeAreNamed) {
  const auto problem = [](auto change) {
    Drift drift;
    drift.hours = 48;
    change(&drift);
    return check_drift(drift).message();
  };
  EXPECT_EQ(problem([](Drift*) {}), "");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-0.1, 1.7, nan, std::numeric_limits<double>::infinity()})
    EXPECT_NE(problem([&](Drift* d) { d->turn = bad; }).find("--drift"), std::string::npos) << bad;
  for (const double bad : {-0.1, 1.01, nan})
    EXPECT_NE(problem([&](Drift* d) { d->churn = bad; }).find("--churn"), std::string::npos) << bad;
  for (const double bad : {-0.1, 5.1, nan})
    EXPECT_NE(problem([&](Drift* d) { d->wave = bad; }).find("--wave"), std::string::npos) << bad;
  EXPECT_NE(problem([](Drift* d) { d->hours = 0; }).find("--hours 0"), std::string::npos);
  EXPECT_EQ(problem([](Drift* d) {
              d->hours = 1000;
              d->churn = 0.5;
            }),
            "--churn 0.5 in 1000 hours renews the ids 500 times; at most 250 are possible");
}

// A place passes from one id to the next in the course of a life, without a jump.
TEST(TruthMoment, APlaceHasOneHolderAfterTheOther) {
  TruthMoment moment;
  const auto part_of = [&](uint32_t life) {
    const TruthMoment::Holder holder = moment.holder(1, 12, 34);
    return life == holder.old ? 1 - holder.handed : (life == holder.old + 1 ? holder.handed : 0);
  };
  moment.lives = 0;
  double before[4] = {part_of(0), part_of(1), part_of(2), part_of(3)};
  EXPECT_GT(before[0], 0);
  for (int step = 1; step <= 200; ++step) {
    moment.lives = 0.01 * step;
    double sum = 0;
    for (uint32_t life = 0; life < 4; ++life) {
      EXPECT_NEAR(part_of(life), before[life], 0.010001) << step;
      sum += before[life] = part_of(life);
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  EXPECT_EQ(before[0], 0);  // two lives later nobody of then is left
}

}  // namespace
}  // namespace flux
