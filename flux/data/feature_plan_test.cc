// Features against a plain computation of each line, through the readers of both formats.
#include "flux/data/feature_plan.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "flux/base/hash.h"
#include "flux/base/random.h"
#include "flux/data/criteo.h"
#include "flux/data/feature_check.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

FeatureOptions feature(const char* name, const char* op, std::vector<std::string> of) {
  FeatureOptions out;
  out.name = name;
  out.op = op;
  out.of = std::move(of);
  return out;
}

Batch read_all(const std::string& path, DataOptions options) {
  options.shuffle = false;
  options.batch_size = 100'000;
  const std::vector<std::string> files = {path};
  const auto geometry = Dataset::scan(files, options, 1);
  EXPECT_TRUE(geometry.is_ok()) << geometry.status().message();
  const auto data = Dataset::open(geometry.value(), options);
  EXPECT_TRUE(data.is_ok()) << data.status().message();
  Batch batch;
  const Status status = data.value()->open_block(0, 0).value()->read_batch(0, &batch);
  EXPECT_TRUE(status.is_ok()) << status.message();
  return batch;
}

// What a line says of a slot, key by key, as (key in the table, value).
using Keys = std::vector<std::pair<uint64_t, float>>;
Keys keys_of(const Batch& batch, uint32_t example, uint32_t slot) {
  Keys out;
  const size_t place = size_t{example} * batch.slots + slot;
  const size_t first = batch.begin.empty() ? place : batch.begin[place];
  const size_t last = batch.begin.empty() ? place + 1 : batch.begin[place + 1];
  for (size_t k = first; k < last; ++k)
    out.emplace_back(batch.keys[k], batch.values.empty() ? 1.0F : batch.values[k]);
  return out;
}

uint64_t key(const char* space, uint64_t raw) {
  return hash_pair(hash_bytes(space), raw);
}

struct Line {
  std::vector<uint64_t> user, tags;
  std::vector<float> tag_values;
  std::string city;
  float price = 0;
};

std::vector<Line> write_lines(const std::string& path, size_t n) {
  Random random(5);
  std::vector<Line> lines(n);
  std::ofstream out(path);
  for (Line& line : lines) {
    line.user.assign(random.below(3), 0);
    for (uint64_t& user : line.user) user = random.below(50);
    line.tags.assign(random.below(6), 0);
    for (uint64_t& tag : line.tags) tag = random.below(20);
    line.city = std::string(1 + random.below(4), static_cast<char>('a' + random.below(26)));
    line.price = static_cast<float>(random.below(4000)) * 0.25F - 100;
    out << random.below(2) << " city:" << line.city << " price:" << line.price;
    for (const uint64_t user : line.user) out << " user:" << user;
    for (const uint64_t tag : line.tags) {
      line.tag_values.push_back(static_cast<float>(random.below(8)) * 0.5F);
      out << " tags:" << tag << ':' << line.tag_values.back();
    }
    out << '\n';
  }
  return lines;
}

DataOptions feasign_options() {
  DataOptions options;
  options.format = "feasign";
  options.dense_transform = "none";
  options.slots = {{"user", ""}, {"tags", "", false, true}, {"city", "", true}};
  options.dense = {"price"};
  FeatureOptions small = feature("city_small", "hash", {"city"});
  small.modulus = 7;
  FeatureOptions bucket = feature("price_bucket", "bucketize", {"price"});
  bucket.boundaries = {-50, 0, 0.5, 100, 777.25};
  FeatureOptions logs = feature("price_log", "bucketize", {"price"});
  logs.log_base = 2;
  logs.buckets = 9;
  FeatureOptions quantiles = feature("price_q", "bucketize", {"price"});
  quantiles.quantiles = {-100, -100, 3, 3, 3, 500};
  FeatureOptions cross = feature("user_x_tags_x_bucket", "cross", {"user", "tags", "price_bucket"});
  cross.limit = 5;
  FeatureOptions clip = feature("price_clip", "clip", {"price"});
  clip.min = -3;
  clip.max = 400;
  FeatureOptions normal = feature("price_normal", "normalise", {"price_clip"});
  normal.mean = 2;
  normal.deviation = 8;
  // The cross comes before what it is computed from.
  options.features = {cross, small, bucket, logs, quantiles, clip, normal};
  return options;
}

uint64_t buckets_below(const std::vector<double>& boundaries, float x) {
  return static_cast<uint64_t>(
      std::count_if(boundaries.begin(), boundaries.end(), [&](double b) { return b <= x; }));
}

TEST(FeaturePlan, EqualsAPlainComputationOfEachLine) {
  const TestDirectory folder;
  const std::vector<Line> lines = write_lines(folder.path("a.txt"), 500);
  const Batch batch = read_all(folder.path("a.txt"), feasign_options());
  ASSERT_EQ(batch.size, 500U);
  ASSERT_EQ(batch.slots, 8U);  // 3 of the lines, 5 that make keys
  ASSERT_EQ(batch.dense, 3U);
  for (uint32_t i = 0; i < batch.size; ++i) {
    SCOPED_TRACE(i);
    const Line& line = lines[i];
    const uint64_t bucket =
        key("price_bucket", buckets_below({-50, 0, 0.5, 100, 777.25}, line.price));
    Keys cross;
    for (const uint64_t user : line.user)
      for (size_t t = 0; t < line.tags.size() && cross.size() < 5; ++t) {
        uint64_t h = hash_bytes("user_x_tags_x_bucket");
        for (const uint64_t part : {key("user", user), key("tags", line.tags[t]), bucket})
          h = hash_pair(h, part);
        cross.emplace_back(h, line.tag_values[t]);
      }
    EXPECT_EQ(keys_of(batch, i, 3), cross);
    const uint64_t city = key("city", hash_bytes(line.city));
    EXPECT_EQ(keys_of(batch, i, 2), (Keys{{city, 1}}));
    EXPECT_EQ(keys_of(batch, i, 4), (Keys{{key("city_small", mix64(city) % 7), 1}}));
    EXPECT_EQ(keys_of(batch, i, 5), (Keys{{bucket, 1}}));
    const uint64_t power =
        line.price < 1 ? 0
                       : std::min<uint64_t>(8, 1 + static_cast<uint64_t>(std::log2(line.price)));
    EXPECT_EQ(keys_of(batch, i, 6), (Keys{{key("price_log", power), 1}})) << line.price;
    EXPECT_EQ(keys_of(batch, i, 7),
              (Keys{{key("price_q", buckets_below({-100, 3, 500}, line.price)), 1}}));
    const float clipped = std::clamp(line.price, -3.0F, 400.0F);
    EXPECT_EQ(batch.dense_values[i * 3], line.price);
    EXPECT_EQ(batch.dense_values[i * 3 + 1], clipped);
    EXPECT_EQ(batch.dense_values[i * 3 + 2], (clipped - 2) / 8);
  }
}

TEST(FeaturePlan, WhatIsHiddenIsStillASource) {
  const TestDirectory folder;
  const std::vector<Line> lines = write_lines(folder.path("a.txt"), 100);
  DataOptions options = feasign_options();
  const Batch whole = read_all(folder.path("a.txt"), options);
  options.hidden = {"user", "city", "price_bucket"};
  EXPECT_EQ(features_of(options).slot_names,
            (std::vector<std::string>{"tags", "user_x_tags_x_bucket", "city_small", "price_log",
                                      "price_q"}));
  const Batch shown = read_all(folder.path("a.txt"), options);
  ASSERT_EQ(shown.slots, 5U);
  const uint32_t places[] = {1, 3, 4, 6, 7};
  for (uint32_t i = 0; i < shown.size; ++i)
    for (uint32_t s = 0; s < 5; ++s)
      EXPECT_EQ(keys_of(shown, i, s), keys_of(whole, i, places[s])) << i << " " << s;
  options.hidden.emplace_back("tags");
  options.hidden.emplace_back("user_x_tags_x_bucket");
  EXPECT_FALSE(features_of(options).values);
  EXPECT_TRUE(read_all(folder.path("a.txt"), options).values.empty());
}

TEST(FeaturePlan, CriteoColumnsStayOneKeyEach) {
  const TestDirectory folder;
  {
    std::ofstream out(folder.path("a.tsv"));
    for (int line = 0; line < 50; ++line) {
      out << line % 2;
      for (int i = 1; i <= 13; ++i)
        out << '\t' << (i == 2 && line % 5 == 0 ? "" : std::to_string(line * i - 7));
      for (int c = 1; c <= 26; ++c) out << '\t' << std::hex << (line * c) % 97 << std::dec;
      out << '\n';
    }
  }
  DataOptions options;
  FeatureOptions bucket = feature("I2_bucket", "bucketize", {"I2"});
  for (int b = 0; b < 60; ++b)
    bucket.boundaries.push_back(b * 1.5 - 6);  // more than compared one by one
  FeatureOptions hash = feature("C3_small", "hash", {"C3"});
  hash.modulus = 10;
  options.features = {bucket, hash, feature("C1_x_bucket", "cross", {"C1", "I2_bucket"}),
                      feature("I1_log", "log1p", {"I1"})};
  const Batch batch = read_all(folder.path("a.tsv"), options);
  ASSERT_EQ(batch.slots, 29U);
  ASSERT_EQ(batch.dense, 14U);
  EXPECT_TRUE(batch.begin.empty());
  for (uint32_t i = 0; i < batch.size; ++i) {
    const float price = i % 5 == 0 ? 0.0F : static_cast<float>(i) * 2 - 7;
    const uint64_t in = key("I2_bucket", buckets_below(bucket.boundaries, price));
    const uint64_t c1 = criteo_key(0, i % 97), c3 = criteo_key(2, i * 3 % 97);
    EXPECT_EQ(batch.keys[i * 29], c1);
    EXPECT_EQ(batch.keys[i * 29 + 26], in);
    EXPECT_EQ(batch.keys[i * 29 + 27], key("C3_small", mix64(c3) % 10));
    EXPECT_EQ(batch.keys[i * 29 + 28], hash_pair(hash_pair(hash_bytes("C1_x_bucket"), c1), in));
    EXPECT_EQ(batch.dense_values[i * 14 + 13], batch.dense_values[i * 14]) << "both are log1p";
    EXPECT_NEAR(batch.dense_values[i * 14 + 1], std::log1p(std::max(price, 0.0F)), 1e-5);
  }
}

std::string mistakes(const std::vector<FeatureOptions>& features) {
  DataOptions options = feasign_options();
  options.features = features;
  std::string out;
  for (const FeatureMistake& mistake : feature_mistakes(options))
    out += fmt::format("{}.{}: {}\n", features[mistake.feature].name, mistake.field, mistake.what);
  return out;
}

TEST(FeatureCheck, EveryMistakeIsNamedWithItsField) {
  EXPECT_EQ(mistakes({feature("a", "hash", {"usr"})}),
            "a.of: there is no slot 'usr', did you mean 'user'?; there are: user, tags, city, a\n");
  EXPECT_EQ(mistakes({feature("a", "hash", {"price"})}),
            "a.of: 'price' is a number; hash is of keys (bucketize makes one of a number)\n");
  EXPECT_EQ(mistakes({feature("a", "clip", {"user"})}),
            "a.of: 'user' has keys; clip is of a number\n");
  EXPECT_EQ(mistakes({feature("a", "cros", {"user", "tags"})}),
            "a.op: op 'cros' is not known, did you mean 'cross'?; allowed: bucketize, clip, cross, "
            "hash, log1p, normalise\n");
  EXPECT_EQ(mistakes({feature("a", "cross", {"user"})}),
            "a.of: cross is of 2 to 8 features, not of 1\n");
  EXPECT_EQ(mistakes({feature("user", "hash", {"tags"})}),
            "user.name: the name is taken by a slot, a dense feature or another feature\n");
  EXPECT_EQ(mistakes({feature("label", "hash", {"tags"})}),
            "label.name: the name is taken by a label\n");
  EXPECT_EQ(
      mistakes({feature("a", "bucketize", {"price"})}),
      "a.op: bucketize needs one of boundaries, quantiles and log_base: where its buckets end\n");
  FeatureOptions both = feature("a", "bucketize", {"price"});
  both.boundaries = {1, 2};
  both.log_base = 2;
  EXPECT_EQ(mistakes({both}),
            "a.op: bucketize needs only one of boundaries, quantiles and log_base\n");
  both.log_base = 0;
  both.boundaries = {1, 2, 2};
  EXPECT_EQ(mistakes({both}), "a.boundaries: boundaries must rise: 2 comes after 2\n");
  both.boundaries = {};
  both.quantiles = {1, 1, 0.5};
  EXPECT_EQ(mistakes({both}), "a.quantiles: quantiles must not fall: 0.5 comes after 1\n");
  FeatureOptions wide = feature("a", "clip", {"price"});
  wide.min = 2;
  EXPECT_EQ(mistakes({wide}), "a.min: min (2) must be below max (1)\n");
}

TEST(FeatureCheck, FeaturesThatNeedEachOtherAreNamedInACircle) {
  EXPECT_EQ(mistakes({feature("z", "hash", {"user"}), feature("a", "cross", {"b", "z"}),
                      feature("b", "hash", {"c"}), feature("c", "hash", {"a"})}),
            "a.of: it is computed from itself: a of b of c of a\n");
  EXPECT_EQ(mistakes({feature("a", "hash", {"a"})}), "a.of: it is computed from itself: a of a\n");
}

}  // namespace
}  // namespace flux
