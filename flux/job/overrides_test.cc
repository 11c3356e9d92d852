#include "flux/job/overrides.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

constexpr const char* kFile = R"(data:
  train: a.tsv
tables:
  - {name: embedding, dim: 4}
  - {name: second, dim: 5}
model:
  layers:
    - {name: e, op: embedding, table: embedding}
    - {name: s, op: embedding, table: second}
    - {name: x, op: concat, inputs: [e, s]}
    - {name: fc1, op: fc, inputs: x, units: 1}
    - {name: loss, op: logistic_loss, inputs: [fc1, label]}
)";

Result<Job> with(const std::vector<std::string>& sets, const std::string& file = kFile) {
  std::vector<Override> overrides;
  for (const std::string& set : sets) {
    Result<Override> parsed = parse_override(set);
    if (!parsed.is_ok()) return parsed.status();
    overrides.push_back(std::move(parsed).value());
  }
  return parse_job("job.yaml", file, overrides);
}

Job accepted(const std::vector<std::string>& sets, const std::string& file = kFile) {
  Result<Job> job = with(sets, file);
  EXPECT_TRUE(job.is_ok()) << job.status().message();
  return job.is_ok() ? std::move(job).value() : Job{};
}

std::string refused(const std::vector<std::string>& sets) {
  const Result<Job> job = with(sets);
  EXPECT_FALSE(job.is_ok());
  return job.status().message();
}

TEST(Overrides, SetFieldsThatExistOrNot) {
  const Job job = accepted({"name=x", "data.batch=5", "dense_optimizer.lr=0.5", "seed=7",
                            "checkpoint.keep=3", "data.shuffle=false"});
  EXPECT_EQ(job.name, "x");
  EXPECT_EQ(job.output, "out/x");
  EXPECT_EQ(job.data.batch_size, 5U);
  EXPECT_EQ(job.dense_optimizer.lr, 0.5F);
  EXPECT_EQ(job.dense_optimizer.rule, "adam");
  EXPECT_EQ(job.seed, 7U);
  EXPECT_EQ(job.tables[1].seed, 7U);
  EXPECT_EQ(job.checkpoint_keep, 3U);
  EXPECT_FALSE(job.data.shuffle);
}

TEST(Overrides, ElementsOfListsByNumberAndByName) {
  const Job job = accepted({"tables.0.dim=16", "tables.second.dim=17",
                            "tables.second.optimizer.lr=0.5", "model.layers.fc1.units=1"});
  EXPECT_EQ(job.tables[0].dim, 16U);
  EXPECT_EQ(job.tables[1].dim, 17U);
  EXPECT_EQ(job.tables[1].optimizer.lr, 0.5F);
}

TEST(Overrides, ListsOfTexts) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(accepted({"data.train=b.tsv"}).passes[0].train, Texts{"b.tsv"});
  EXPECT_EQ(accepted({"data.train=b.tsv,c.tsv"}).passes[0].train, (Texts{"b.tsv", "c.tsv"}));
  EXPECT_EQ(accepted({"data.train=[b.tsv, 'c,d.tsv']"}).passes[0].train,
            (Texts{"b.tsv", "c,d.tsv"}));
  EXPECT_EQ(accepted({"data.train=\"b,c.tsv\""}).passes[0].train, Texts{"b,c.tsv"});
  EXPECT_EQ(accepted({"data.test=*.tsv"}).test, Texts{"*.tsv"});
  EXPECT_EQ(accepted({"model.layers.x.inputs=s,e"}).layers[2].inputs, (Texts{"s", "e"}));
}

TEST(Overrides, AreNamedByWhatTheDataSectionLacks) {
  EXPECT_EQ(refused({"data.batch=5", "data.one_key=true"}).find("--set data.one_key=true: data: "),
            0U);
  EXPECT_EQ(refused({"data.format=csv", "data.csv.separator=ab", "data.dense=x"})
                .find("--set data.csv.separator=ab: data.csv.separator: "),
            0U);
  EXPECT_EQ(refused({"data.format=feasign"}).find("--set data.format=feasign: data: "), 0U);
  const std::string file = std::string(kFile).replace(0, 5, "data:\n  one_key: true");
  const auto own = with({"data.batch=5"}, file);
  EXPECT_EQ(own.status().message().find("job.yaml:1:1: data: "), 0U)
      << "the --set is none of its reasons: " << own.status().message();
}

TEST(Overrides, APlainValueIsTakenAsItIs) {
  EXPECT_EQ(accepted({"output=a: b # c"}).output, "a: b # c");
  EXPECT_EQ(accepted({"output=a=b"}).output, "a=b");
  EXPECT_EQ(accepted({"output=a,b"}).output, "a,b");
}

TEST(Overrides, TheLastOneWins) {
  EXPECT_EQ(accepted({"epochs=2", "epochs=3"}).epochs, 3U);
}

TEST(Overrides, WholeMapsAndEmptySections) {
  EXPECT_EQ(accepted({"dense_optimizer={rule: sgd, lr: 0.5}"}).dense_optimizer.rule, "sgd");
  EXPECT_EQ(accepted({"checkpoint.keep=4"}, std::string("checkpoint:\n") + kFile).checkpoint_keep,
            4U);
}

TEST(Overrides, MendWhatTheFileSaysWrong) {
  EXPECT_EQ(accepted({"epochs=2"}, std::string("epochs: zero\n") + kFile).epochs, 2U);
}

TEST(Overrides, ProblemsNameTheOverride) {
  EXPECT_EQ(
      refused({"epochs=1", "data.batc=5"}),
      "--set data.batc=5: unknown field 'batc', did you mean 'batch'?\n"
      "    allowed here: format, pipe, pipe_timeout, pipe_max_gb, slots, dense, labels, weights, "
      "raw_keys, one_key, bad_records, group, columns, minus_one_is_zero, csv, vocabulary, "
      "negatives, subsample, features, train, test, batch, shuffle, global_shuffle, "
      "shuffle_memory_mb, "
      "dense_transform, "
      "key_per_example");
  EXPECT_EQ(refused({"data.batch=0"}),
            "--set data.batch=0: 'batch' must be an integer from 1 to 1000000, not '0'");
  EXPECT_EQ(refused({"data.batch="}),
            "--set data.batch=: 'batch' has no value\n    it must be an integer from 1 to 1000000");
  EXPECT_TRUE(
      refused({"nam=1"}).starts_with("--set nam=1: unknown field 'nam', did you mean 'name'?"));
  EXPECT_TRUE(refused({"data.train.x=1"})
                  .starts_with("--set data.train.x=1: there is no 'x' inside the value 'a.tsv'"));
  EXPECT_TRUE(refused({"tables.2.dim=1"})
                  .starts_with("--set tables.2.dim=1: the list has no element '2'\n    it has 2 "
                               "elements, counted from 0"));
  EXPECT_TRUE(refused({"tables.embeding.dim=1"})
                  .starts_with("--set tables.embeding.dim=1: the list has no element 'embeding', "
                               "did you mean 'embedding'?"));
  EXPECT_TRUE(
      refused({"data.train=[a"}).starts_with("--set data.train=[a: the value cannot be read"));
  EXPECT_TRUE(refused({"passes=[{train: b}]"}).find("both 'data.train' and 'passes'") !=
              std::string::npos);
  EXPECT_TRUE(refused({"model.layers.fc1.units=0"})
                  .starts_with("--set model.layers.fc1.units=0: 'units' must be an integer"));
}

TEST(Overrides, TextThatIsNoOverride) {
  EXPECT_EQ(parse_override("epochs").status().message(),
            "--set epochs: there is no '='; write --set a.b=value, for example --set epochs=2");
  for (const char* text : {"=1", "a..b=1", ".a=1", "a.=1"}) {
    const Result<Override> parsed = parse_override(text);
    ASSERT_FALSE(parsed.is_ok()) << text;
    EXPECT_NE(parsed.status().message().find("empty step"), std::string::npos);
  }
  EXPECT_FALSE(parse_override("name=\xFF").is_ok());
  const Result<Override> good = parse_override("a.b=c=d");
  ASSERT_TRUE(good.is_ok());
  EXPECT_EQ(good.value().path, "a.b");
  EXPECT_EQ(good.value().value, "c=d");
}

TEST(Overrides, OnAnEmptyFileStillSayThatItIsEmpty) {
  EXPECT_FALSE(with({"name=x"}, "").is_ok());
}

}  // namespace
}  // namespace flux
