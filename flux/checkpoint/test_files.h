// For tests of this folder only: files compared with golden ones and damaged in every place, and
// replicas compared. Functions; they fail the test that calls them.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "flux/base/status.h"
#include "flux/protocol/shard_replica.h"

namespace flux::test {

inline const std::string kGolden = FLUX_SOURCE_DIR "/tests/golden/";

inline std::string read_golden(const std::string& name) {
  std::ifstream in(kGolden + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Today's code must write the file that the first version wrote. A change of the format needs a new
// version, a new golden file, and a reader of the old one.
inline void expect_golden(const std::string& name, const std::string& written) {
  if (written == read_golden(name)) return;
  std::string folder = testing::TempDir() + "golden.XXXXXX";  // nobody else writes there
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string now = folder + "/" + name;
  std::ofstream(now, std::ios::binary) << written;
  ADD_FAILURE() << kGolden << name << " is not what is written now, see " << now;
}

// `decode(path, bytes)` must refuse every beginning of the file, and bytes after its end.
template <typename Decode>
void expect_truncations_noticed(const std::string& bytes, const Decode& decode) {
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto back = decode("a/b", std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(back.is_ok()) << size;
    EXPECT_EQ(back.status().code(), Code::kCorrupt);
    EXPECT_EQ(back.status().message().find("a/b:"), 0U) << back.status().message();
  }
  EXPECT_FALSE(decode("x", bytes + '\0').is_ok());
  EXPECT_FALSE(decode("x", bytes + ' ').is_ok());
  EXPECT_FALSE(decode("x", bytes + bytes).is_ok());
}

// ... and every file with one bit flipped; `look(byte, status)` at each refusal.
template <typename Decode, typename Look>
void expect_flips_noticed(const std::string& bytes, const Decode& decode, const Look& look) {
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string bad = bytes;
    bad[bit / 8] ^= static_cast<char>(1U << (bit % 8));
    const auto back = decode("a/b", bad);
    ASSERT_FALSE(back.is_ok()) << "bit " << bit << ": " << testing::PrintToString(bad);
    EXPECT_EQ(back.status().code(), Code::kCorrupt);
    look(bit / 8, back.status());
  }
}
template <typename Decode>
void expect_flips_noticed(const std::string& bytes, const Decode& decode) {
  expect_flips_noticed(bytes, decode, [](size_t, const Status&) {});
}

inline void expect_same_replica(const ShardReplica& a, const ShardReplica& b) {
  EXPECT_EQ(a.shard(), b.shard());
  EXPECT_EQ(a.incarnation(), b.incarnation());
  EXPECT_EQ(a.epoch(), b.epoch());
  EXPECT_EQ(a.op(), b.op());
  EXPECT_EQ(a.stream_hash(), b.stream_hash());
  EXPECT_EQ(a.ledger(), b.ledger());
}

}  // namespace flux::test
