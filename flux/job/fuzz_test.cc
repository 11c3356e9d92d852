// Random damage to a valid job: whatever comes out, parsing ends with a Job or with problems that
// name the file. Seeded, so that a failure repeats.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/job/job.h"

namespace flux {
namespace {

std::string example() {
  std::ifstream in(FLUX_SOURCE_DIR "/examples/ctr_dnn/job.yaml");
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

// Pieces that mean something to YAML or to a job.
const std::vector<std::string>& pieces() {
  static const std::vector<std::string> list = {
      ":",      "- ",     "[",     "]",    "{",     "}",       ",",
      "\n",     "\t",     "&a ",   "*a",   "!t ",   "\"",      "'",
      "|",      ">",      "? ",    "<<: ", "---",   "...",     "%YAML 1",
      "#",      "~",      "0",     "-1",   "1e999", ".nan",    "name",
      "table:", "inputs", "label", "\xFF", "\xC3",  "\\u0000", "99999999999999999999"};
  return list;
}

std::string damage(std::string text, Random* random) {
  const uint64_t times = 1 + random->below(6);
  for (uint64_t i = 0; i < times && !text.empty(); ++i) {
    const size_t at = random->below(text.size());
    const size_t other = random->below(text.size());
    const size_t length = random->below(40);
    switch (random->below(6)) {
      case 0:
        text[at] = static_cast<char>(random->below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, pieces()[random->below(pieces().size())]);
        break;
      case 3:
        text.insert(at, text.substr(other, length));
        break;
      case 4:
        std::swap(text[at], text[other]);
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

TEST(JobFuzz, DamagedJobsNeverCrash) {
  const std::string whole = example();
  ASSERT_TRUE(parse_job("job.yaml", whole, {}).is_ok());
  Random random(20240607);
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = damage(whole, &random);
    const Result<Job> job = parse_job("job.yaml", text, {});
    accepted += job.is_ok() ? 1 : 0;
    if (job.is_ok()) continue;
    EXPECT_EQ(job.status().code(), Code::kInvalid);
    EXPECT_TRUE(job.status().message().starts_with("job.yaml:")) << job.status().message();
  }
  EXPECT_GT(accepted, 0);  // damage in comments
  EXPECT_LT(accepted, 3000);
}

TEST(JobFuzz, DamagedOverridesNeverCrash) {
  const std::string whole = example();
  const std::vector<std::string> good = {"data.train=a,b", "tables.0.dim=3",
                                         "tables.embedding.init=zero", "model.layers.fc1.units=3",
                                         "dense_optimizer={lr: 1}"};
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const Result<Override> parsed =
        parse_override(damage(good[random.below(good.size())], &random));
    if (!parsed.is_ok()) continue;
    const std::vector<Override> overrides = {parsed.value()};
    const Result<Job> job = parse_job("job.yaml", whole, overrides);
    EXPECT_TRUE(job.is_ok() || job.status().code() == Code::kInvalid);
  }
}

}  // namespace
}  // namespace flux
