#include "flux/base/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace flux {
namespace {

using namespace std::string_literals;

TEST(Utf8, LengthOfWellFormedCharacters) {
  EXPECT_EQ(utf8_length("a"), 1U);
  EXPECT_EQ(utf8_length("\xc3\xaf"), 2U);
  EXPECT_EQ(utf8_length("\xe2\x82\xac"), 3U);
  EXPECT_EQ(utf8_length("\xf0\x9f\x98\x80"), 4U);
  // Cut, stray, overlong, a surrogate, too large.
  for (const char* bad : {"\xc3", "\xc3x", "\xaf", "\xff", "\xc0\x80", "\xe0\x80\xaf",
                          "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    EXPECT_EQ(utf8_length(bad), 0U) << bad;
}

// At every place of a text, so that it is seen in whole words and behind them.
TEST(Utf8, TextEndsAtTheFirstByteThatIsNone) {
  for (size_t size = 0; size < 40; ++size) {
    const std::string good(size, 'a');
    EXPECT_EQ(plain_text_bytes(good), size);
    EXPECT_EQ(plain_text_bytes(good + "\xc3\xaf" + good), 2 * size + 2);
    for (const std::string& bad : {"\0"s, "\xff"s, "\xc3"s, "\xc0\x80"s}) {
      EXPECT_EQ(plain_text_bytes(good + bad), size);
      EXPECT_EQ(plain_text_bytes(good + bad + good), size);
      EXPECT_EQ(plain_text_bytes(good + "\xc3\xaf" + bad + good), size + 2);
    }
  }
  EXPECT_EQ(plain_text_bytes("\x01\x02\x7f\t "), 5U);
}

}  // namespace
}  // namespace flux
