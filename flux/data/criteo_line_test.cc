// The fast parser against the plain one: the same records accepted, the same bits given.
#include "flux/data/criteo_line.h"

#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/data/decimal.h"
#include "flux/data/reference_parser.h"

namespace flux {
namespace {

struct Outcome {
  bool ok = false;
  CriteoRecord record;
};

Outcome fast(const std::string& line) {
  // Exactly the slack that the contract asks for, so that the address sanitizer sees more.
  std::vector<char> text(line.size() + kCriteoSlack, '\t');
  std::memcpy(text.data(), line.data(), line.size());
  Outcome out;
  out.ok = parse_criteo_line(text.data(), line.size(), &out.record);
  return out;
}

Outcome plain(const std::string& line) {
  Outcome out;
  out.ok = !reference_parse_line(line, &out.record).has_value();
  return out;
}

// Prints the line when both do not agree; returns whether the line was accepted.
bool expect_same(const std::string& line) {
  const Outcome a = fast(line);
  const Outcome b = plain(line);
  EXPECT_EQ(a.ok, b.ok) << line;
  if (!a.ok || !b.ok) return false;
  EXPECT_EQ(a.record.label, b.record.label) << line;
  EXPECT_EQ(std::memcmp(a.record.dense, b.record.dense, kCriteoDense * sizeof(float)), 0) << line;
  EXPECT_EQ(std::memcmp(a.record.keys, b.record.keys, kCriteoSlots * sizeof(uint64_t)), 0) << line;
  return true;
}

std::string random_dense(Random& r) {
  switch (r.below(9)) {
    case 0:
      return "";
    case 1:
      return fmt::format("{}", r.below(100000));
    case 2:
      return fmt::format("-{}", r.below(100));
    case 3:
      return fmt::format("{:.{}f}", r.exponential() * 1000, r.below(10));
    case 4:
      return fmt::format("{:.{}e}", r.normal(), r.below(18));
    case 5:
      return fmt::format("{:.17g}", r.normal() * 1e-3);
    case 6:
      return fmt::format(".{}", r.below(1000000));
    case 7:
      return fmt::format("-{}.", r.below(1000000));
    default:
      return fmt::format("{:.4f}", r.exponential());
  }
}

std::string random_token(Random& r) {
  const uint64_t kind = r.below(6);
  if (kind == 0) return "";
  if (kind == 1) return fmt::format("{:x}", r.next() >> (32 + r.below(32)));
  if (kind == 2) return fmt::format("{:08X}", r.next() >> 32);
  return fmt::format("{:08x}", r.next() >> 32);
}

std::string random_line(Random& r, bool regular) {
  std::string line = r.chance(0.3) ? "1" : "0";
  for (uint32_t i = 0; i < kCriteoDense; ++i)
    line += "\t" + (regular ? fmt::format("{:.4f}", r.exponential()) : random_dense(r));
  for (uint32_t s = 0; s < kCriteoSlots; ++s)
    line += "\t" + (regular ? fmt::format("{:08x}", r.next() >> 32) : random_token(r));
  return line;
}

TEST(CriteoLine, AcceptsAndAgreesOnRandomRecords) {
  Random r(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string line = random_line(r, i % 4 == 0);
    ASSERT_TRUE(expect_same(line + (i % 3 == 0 ? "\r" : ""))) << line;
  }
}

TEST(CriteoLine, AgreesOnMutatedRecords) {
  Random r(2);
  const std::string alphabet = "\t\t0019afAFgG.-+eE \r\n\x00\x80\xff:/@`nix";
  int accepted = 0;
  constexpr int kLines = 60000;
  for (int i = 0; i < kLines; ++i) {
    std::string line = random_line(r, i % 2 == 0);
    for (uint64_t change = 1 + r.below(3); change > 0; --change) {
      const size_t at = r.below(line.size());
      const char c = alphabet[r.below(alphabet.size())];
      const uint64_t kind = r.below(4);
      if (kind == 0) line.erase(at, 1 + r.below(3));
      if (kind == 1) line.insert(at, 1, c);
      if (kind == 2) line[at] = c;
      if (kind == 3) line.resize(at + 1);
      if (line.empty()) break;
    }
    accepted += expect_same(line) ? 1 : 0;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(accepted, kLines / 50);
  EXPECT_LT(accepted, kLines);
}

TEST(CriteoLine, AgreesOnEveryShortDecimal) {
  // All strings of up to 4 characters from the alphabet of decimals, in the first and last field.
  const std::string alphabet = "05.-e+";
  std::vector<std::string> all = {""};
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].size() < 4)
      for (const char c : alphabet) all.push_back(all[i] + c);
  const std::string tail(kCriteoSlots, '\t');
  int accepted = 0;
  for (const std::string& text : all)
    accepted += expect_same("0\t" + text + std::string(12, '\t') + text + tail) ? 1 : 0;
  EXPECT_GT(accepted, 100);
}

TEST(CriteoLine, GivesTheKeysOfTheFormat) {
  std::string line = "1";
  for (uint32_t i = 0; i < kCriteoDense; ++i) line += i == 0 ? "\t-12.5" : "\t";
  for (uint32_t s = 0; s < kCriteoSlots; ++s)
    line += s == 0 ? "\t" : s == 25 ? "\tDEADbeef" : "\t7";
  const Outcome out = fast(line);
  ASSERT_TRUE(out.ok);
  EXPECT_EQ(out.record.label, 1.0F);
  EXPECT_EQ(out.record.dense[0], -12.5F);
  EXPECT_EQ(out.record.dense[12], 0.0F);
  EXPECT_EQ(out.record.keys[0], (1ULL << 32) | (1ULL << 48));
  EXPECT_EQ(out.record.keys[1], (2ULL << 32) | 7);
  EXPECT_EQ(out.record.keys[25], (26ULL << 32) | 0xdeadbeefULL);
}

TEST(Decimal, RoundsLikeTheNearestDouble) {
  Random r(3);
  for (int i = 0; i < 100000; ++i) {
    const double value = r.normal() * std::pow(10.0, static_cast<double>(r.below(60)) - 30);
    const std::string text = fmt::format("{:.{}e}", value, r.below(20));
    float out = 0;
    ASSERT_TRUE(parse_decimal(text.data(), text.data() + text.size(), &out)) << text;
    ASSERT_EQ(out, static_cast<float>(std::strtod(text.c_str(), nullptr))) << text;
  }
}

TEST(ReferenceParser, NamesColumnAndRule) {
  CriteoRecord record;
  const std::string dense(kCriteoDense, '\t');
  const std::string tokens(kCriteoSlots - 1, '\t');
  const auto wrong = [&](const std::string& line) {
    const auto error = reference_parse_line(line, &record);
    return error ? fmt::format("{}: {}", error->column, error->what) : "accepted";
  };
  const std::string missing = ", or nothing when it is missing";
  EXPECT_EQ(wrong("2" + dense + "\t" + tokens), "1: label is '2'; expected 0 or 1");
  EXPECT_EQ(wrong("nan" + dense + "\t" + tokens), "1: label is 'nan'; expected 0 or 1");
  EXPECT_EQ(wrong("0\tNaN" + dense.substr(1) + "\t" + tokens),
            "3: I1 is 'NaN'; expected a decimal number such as 3, -1, 0.25 or 1e-3" + missing);
  EXPECT_EQ(wrong("0\t1e99" + dense.substr(1) + "\t" + tokens),
            "3: I1 is '1e99'; out of range, expected a number that a float can hold (up to "
            "3.4e38)" +
                missing);
  EXPECT_EQ(wrong("0" + dense + "\t123456789" + tokens),
            "16: C1 is '123456789'; expected 1 to 8 hexadecimal digits" + missing);
  EXPECT_EQ(wrong("0" + dense + tokens),
            "40: 39 fields; expected 40 between tabs: label, I1..I13, C1..C26");
  EXPECT_EQ(wrong("0" + dense + "\t" + tokens + "\tff"),
            "42: 41 fields; expected 40 between tabs: label, I1..I13, C1..C26");
  EXPECT_EQ(wrong("\r"), "1: blank line; every line must be a record, remove it");
}

}  // namespace
}  // namespace flux
