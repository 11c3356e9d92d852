#include "flux/report/event_file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

TEST(EventFile, Crc32cOfKnownTexts) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);            // the check value of CRC-32C
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(EventFile, AnEventByteByByte) {
  // field 1 (double 1.5), field 2 (varint 300), field 5 {field 1 {field 1 "a", field 2 (float
  // 0.5)}}
  EXPECT_EQ(hex(scalars_event({1.5, 300, {{"a", 0.5}}})),
            "09000000000000f83f10ac022a0a0a080a0161150000003f");
}

TEST(EventFile, ARecordIsFramed) {
  const std::string record = event_record("abc");
  ASSERT_EQ(record.size(), 8 + 4 + 3 + 4U);
  EXPECT_EQ(hex(record.substr(0, 8)), "0300000000000000");
  EXPECT_EQ(record.substr(12, 3), "abc");
  const uint32_t crc = crc32c("abc");
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  EXPECT_EQ(record.substr(15), std::string(reinterpret_cast<const char*>(&masked), 4));
}

TEST(EventFile, EachRunHasAFileOfItsOwn) {
  const std::string folder = testing::TempDir() + "/events";
  std::filesystem::remove_all(folder);
  const auto one = EventFile::create(folder, 1e9, 0);
  const auto two = EventFile::create(folder, 1e9, 500);
  ASSERT_TRUE(one.is_ok() && two.is_ok());
  EXPECT_NE(one.value()->path(), two.value()->path());
  EXPECT_NE(one.value()->path().find("events.out.tfevents.1000000000"), std::string::npos);
  const uint64_t before = std::filesystem::file_size(one.value()->path());
  ASSERT_TRUE(one.value()->add({1e9, 100, {{"loss", 0.5}}}).is_ok());
  EXPECT_GT(std::filesystem::file_size(one.value()->path()), before) << "seen at once";
  ASSERT_TRUE(write_file_atomic(folder + "/file", "x").is_ok());
  EXPECT_FALSE(EventFile::create(folder + "/file", 1e9, 0).is_ok());
}

}  // namespace
}  // namespace flux
