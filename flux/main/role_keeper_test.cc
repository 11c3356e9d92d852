// What the keeper of servers and workers decides, without processes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/main/hung_roles.h"
#include "flux/main/kill_orders.h"
#include "flux/main/role_log.h"

namespace flux {
namespace {

std::vector<Faults::Start> starts(std::string_view text) {
  const auto parsed = parse_faults(text);
  EXPECT_TRUE(parsed.is_ok()) << parsed.status().message();
  return parsed.is_ok() ? parsed.value().starts : std::vector<Faults::Start>();
}

TEST(KillOrders, OneStartCarriesOneOrder) {
  KillOrders orders;
  const auto all = starts(
      "start server-0 install_begin:1\nstart server-1 install_end:2\n"
      "start server-0 install_mid:3\n");
  EXPECT_EQ(orders.take("server-0", all), "install_begin:1");
  EXPECT_EQ(orders.take("server-0", all), "install_mid:3");
  EXPECT_EQ(orders.take("server-0", all), "") << "each is carried once";
  EXPECT_EQ(orders.take("server-1", all), "install_end:2");
  EXPECT_EQ(orders.take("server-2", all), "");
}

TEST(KillOrders, WhatIsTakenBackHitsNobodyAndMayComeAgain) {
  KillOrders orders;
  const auto one = starts("start server-0 install_mid:1\n");
  EXPECT_EQ(orders.take("server-0", {}), "") << "given up before the start";
  EXPECT_EQ(orders.take("server-0", one), "install_mid:1");
  orders.look(one);
  EXPECT_EQ(orders.take("server-0", one), "") << "the successor of who carried it";
  orders.look({});
  EXPECT_EQ(orders.take("server-0", one), "install_mid:1") << "ordered anew";
  const auto two = starts("start server-0 install_mid:1\nstart server-0 install_mid:1\n");
  EXPECT_EQ(orders.take("server-0", two), "install_mid:1") << "two faults with one text";
  EXPECT_EQ(orders.take("server-0", two), "");
  orders.look(one);
  EXPECT_EQ(orders.take("server-0", one), "");
}

TEST(RoleLog, TheReasonIsTheLineOfFlux) {
  EXPECT_EQ(reason_in_log(""), "");
  EXPECT_EQ(reason_in_log("a\nb\n\n"), "b");
  EXPECT_EQ(reason_in_log("no route to host\r\n"), "no route to host");
  EXPECT_EQ(reason_in_log("flux: --die-at: 1 required, 2 given\ncommands: run, check\n"),
            "flux: --die-at: 1 required, 2 given");
  EXPECT_EQ(reason_in_log("flux: first\nx\nflux: second\n  more\n"), "flux: second");
}

constexpr TimeNs kPatience = 10 * kSecond;

TEST(HungRoles, WhoStaysLostIsToldOnceAndAShortPauseIsHarmless) {
  HungRoles roles(kPatience);
  const auto names = [&](const std::map<std::string, uint32_t>& lost, TimeNs now) {
    std::string all;
    for (const HungRoles::Hung& hung : roles.look(lost, now))
      all += fmt::format("{}={} ", hung.name, hung.pid);
    return all;
  };
  EXPECT_EQ(names({{"worker-0", 7}, {"server-1", 8}}, 1), "");
  EXPECT_EQ(names({{"server-1", 8}}, kPatience - 1), "") << "worker-0 is back";
  EXPECT_EQ(names({{"worker-0", 7}, {"server-1", 8}}, kPatience + 1), "server-1=8 ");
  EXPECT_EQ(names({{"worker-0", 7}, {"server-1", 8}}, kPatience + 2), "") << "once";
  EXPECT_EQ(names({{"worker-0", 7}}, 2 * kPatience + 1), "worker-0=7 ");
}

TEST(HungRoles, WhatWasSaidOfAFormerProcessDoesNotHitTheNext) {
  HungRoles roles(kPatience);
  EXPECT_TRUE(roles.look({{"worker-0", 7}}, 0).empty());
  roles.started("worker-0");
  EXPECT_TRUE(roles.look({{"worker-0", 7}}, 2 * kPatience).empty());
  EXPECT_TRUE(roles.look({{"worker-0", 9}}, 3 * kPatience).empty()) << "lost just now";
  EXPECT_EQ(roles.look({{"worker-0", 9}}, 4 * kPatience).size(), 1U);
}

}  // namespace
}  // namespace flux
