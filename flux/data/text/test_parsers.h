// For the unit tests of text formats: a fast parser beside the plain one, names of examples,
// options that are refused.
// Included by tests only.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "flux/data/dataset.h"
#include "flux/data/text/test_lines.h"

namespace flux {

// `fast` takes nothing that `plain` refuses, and reads what it reads: of lines that `make` makes,
// most of them good, some bent with letters of `alphabet`. It takes most of the good ones.
template <typename Fast>
void expect_fast_as_plain(const Fast& fast, const LineParser& plain, std::string (*make)(Random*),
                          std::string_view alphabet) {
  Random random(7);
  LineRecord by_fast, by_plain;
  size_t taken = 0, good = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string line = bent_line(make(&random), alphabet, &random);
    const PaddedLine padded(line, random.below(2) == 0 ? '\n' : '\0');
    const bool fine = !plain.parse(padded.view(), &by_plain);
    good += fine ? 1 : 0;
    if (!fast.parse(padded.view(), &by_fast)) continue;
    ++taken;
    ASSERT_TRUE(fine) << line;
    ASSERT_EQ(text_of(by_fast), text_of(by_plain)) << line;
  }
  EXPECT_GT(good, 20'000U);
  EXPECT_GT(taken, good * 8 / 10);
}

// What a line that is taken calls its example.
inline std::string name_in(const LineParser& parser, std::string_view line) {
  const PaddedLine padded(line);
  LineRecord record;
  const auto wrong = parser.parse(padded.view(), &record);
  EXPECT_FALSE(wrong) << line << ": " << wrong->what;
  return parser.name_of(padded.view());
}

// Why data with these options is refused before any file is looked at.
inline std::string options_problem(const DataOptions& options) {
  const std::string file = "a";
  return Dataset::scan({&file, 1}, options, 1).status().message();
}

}  // namespace flux
