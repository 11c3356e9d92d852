#include "flux/job/job.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flux/job/yaml_document.h"

namespace flux {
namespace {

constexpr const char* kSmall = R"(data:
  train: a.tsv
model:
  layers:
    - {name: y, op: fc, inputs: dense, units: 1}
    - {name: loss, op: logistic_loss, inputs: [y, label]}
)";

Job parse(const std::string& text) {
  Result<Job> job = parse_job("job.yaml", text, {});
  EXPECT_TRUE(job.is_ok()) << job.status().message();
  return job.is_ok() ? std::move(job).value() : Job{};
}

std::string refusal(const std::string& text) {
  const Result<Job> job = parse_job("job.yaml", text, {});
  EXPECT_FALSE(job.is_ok());
  return job.status().message();
}

TEST(Job, EveryFieldHasItsDefault) {
  const Job job = parse(kSmall);
  EXPECT_EQ(job.path, "job.yaml");
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(job.output, "out/job");
  EXPECT_EQ(job.seed, 1U);
  EXPECT_EQ(job.threads, 0U);
  EXPECT_EQ(job.precision, "auto");
  EXPECT_FALSE(job.deterministic);
  EXPECT_EQ(job.data.format, "criteo_tsv");
  EXPECT_EQ(job.data.batch_size, 1000U);
  EXPECT_TRUE(job.data.shuffle);
  EXPECT_EQ(job.data.seed, 1U);
  EXPECT_EQ(job.data.dense_transform, "log1p");
  EXPECT_FALSE(job.data.key_per_example);
  EXPECT_TRUE(job.test.empty());
  ASSERT_EQ(job.passes.size(), 1U);
  EXPECT_EQ(job.passes[0].name, "pass-0");
  EXPECT_EQ(job.passes[0].train, std::vector<std::string>{"a.tsv"});
  EXPECT_EQ(job.epochs, 1U);
  EXPECT_TRUE(job.phases.empty());
  EXPECT_EQ(phase_names(job), std::vector<std::string>{"train"});
  EXPECT_EQ(job.shards, 0U);
  EXPECT_TRUE(job.tables.empty());
  EXPECT_EQ(job.dense_optimizer.rule, "adam");
  EXPECT_EQ(job.dense_optimizer.lr, 0.001F);
  EXPECT_EQ(job.pull_ahead, 0U);
  EXPECT_EQ(job.mode, "async");
  EXPECT_EQ(job.push_in_flight, 4U);
  EXPECT_EQ(job.wire, "fp32");
  EXPECT_EQ(job.checkpoint_every_s, std::nullopt);
  EXPECT_EQ(job.checkpoint_keep, 2U);
  EXPECT_EQ(job.checkpoint_full_every, 8U);
  EXPECT_EQ(job.skip_limit, 0.001);
  EXPECT_EQ(job.on_workers_change, (LrPolicyOptions{"none", 0, 1000}));
}

TEST(Job, LayersCarryOriginsAndDefaultAttributes) {
  const Job job = parse(kSmall);
  ASSERT_EQ(job.layers.size(), 2U);
  const NodeSpec& fc = job.layers[0];
  EXPECT_EQ(fc.name, "y");
  EXPECT_EQ(fc.op, "fc");
  EXPECT_EQ(fc.inputs, std::vector<std::string>{"dense"});
  EXPECT_EQ(fc.origin, "job.yaml:5:7");
  EXPECT_EQ(std::get<int64_t>(fc.attrs.at("units")), 1);
  EXPECT_EQ(std::get<std::string>(fc.attrs.at("activation")), "none");
  EXPECT_TRUE(std::get<bool>(fc.attrs.at("bias")));
  EXPECT_EQ(job.layers[1].inputs, (std::vector<std::string>{"y", "label"}));
}

TEST(Job, ReadsWhatWasWritten) {
  const Job job = parse(R"(
name: all
output: "some where/x"
seed: 18446744073709551615
threads: 3
precision: bf16
data: {format: criteo_tsv, test: [t1, t2], batch: 7, shuffle: false, dense_transform: none,
       key_per_example: true}
passes:
  - {name: 20240101, train: [a, b]}
  - train: c
epochs: 4
shards: 5
tables:
  - {name: t, dim: 3, init: zero, init_scale: 0.5}
model:
  layers:
    - {name: e, op: embedding, table: t, combine: sum}
    - {name: loss, op: logistic_loss, inputs: [e, label]}
dense_optimizer: {rule: sgd, lr: 0.25}
pull_ahead: 6
mode: half_async
push_in_flight: 9
wire: bf16
checkpoint: {every_s: 0.5, keep: 9, full_every: 3}
skip_limit: 0.25
on_workers_change: {lr: sqrt, reference: 4, warmup_batches: 70}
)");
  EXPECT_EQ(job.name, "all");
  EXPECT_EQ(job.output, "some where/x");
  EXPECT_EQ(job.seed, UINT64_MAX);
  EXPECT_EQ(job.data.seed, UINT64_MAX);
  EXPECT_EQ(job.threads, 3U);
  EXPECT_EQ(job.precision, "bf16");
  EXPECT_EQ(job.test, (std::vector<std::string>{"t1", "t2"}));
  EXPECT_EQ(job.data.batch_size, 7U);
  EXPECT_FALSE(job.data.shuffle);
  EXPECT_EQ(job.data.dense_transform, "none");
  EXPECT_TRUE(job.data.key_per_example);
  ASSERT_EQ(job.passes.size(), 2U);
  EXPECT_EQ(job.passes[0].name, "20240101");
  EXPECT_EQ(job.passes[0].train, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(job.passes[1].name, "pass-1");
  EXPECT_EQ(job.epochs, 4U);
  EXPECT_EQ(job.shards, 5U);
  ASSERT_EQ(job.tables.size(), 1U);
  EXPECT_EQ(job.tables[0].name, "t");
  EXPECT_EQ(job.tables[0].dim, 3U);
  EXPECT_EQ(job.tables[0].init, "zero");
  EXPECT_EQ(job.tables[0].init_scale, 0.5F);
  EXPECT_EQ(job.tables[0].seed, UINT64_MAX);
  EXPECT_EQ(std::get<std::string>(job.layers[0].attrs.at("combine")), "sum");
  EXPECT_EQ(job.dense_optimizer.rule, "sgd");
  EXPECT_EQ(job.dense_optimizer.lr, 0.25F);
  EXPECT_EQ(job.pull_ahead, 6U);
  EXPECT_EQ(job.mode, "half_async");
  EXPECT_EQ(job.push_in_flight, 9U);
  EXPECT_EQ(job.wire, "bf16");
  EXPECT_EQ(job.checkpoint_every_s, 0.5F);
  EXPECT_EQ(job.checkpoint_keep, 9U);
  EXPECT_EQ(job.checkpoint_full_every, 3U);
  EXPECT_EQ(job.skip_limit, 0.25);
  EXPECT_EQ(job.on_workers_change, (LrPolicyOptions{"sqrt", 4, 70}));
}

TEST(Job, ReadsOptimizersAndTheSchedule) {
  const Job job = parse(R"(
data: {train: a}
tables:
  - {name: t, optimizer: {rule: adam, lr: 2, epsilon: 1e-10, beta1: 0, beta2: .5, weight_min: -3}}
model:
  layers:
    - {name: e, op: embedding, table: t}
    - {name: y, op: fc, inputs: [e], units: 1, init: he, lr_scale: 2}
    - {name: loss, op: logistic_loss, inputs: [y, label]}
dense_optimizer: {rule: momentum, nesterov: true}
lr_schedule: {kind: step, warmup_batches: 12, batches: 34, rate: 0.5, end: 0.125}
)");
  EXPECT_EQ(job.tables[0].optimizer, (OptimizerOptions{.rule = "adam",
                                                       .lr = 2,
                                                       .epsilon = 1e-10F,
                                                       .beta1 = 0.0F,
                                                       .beta2 = 0.5F,
                                                       .weight_min = -3.0F}));
  EXPECT_EQ(job.dense_optimizer,
            (OptimizerOptions{.rule = "momentum", .lr = 0.001F, .nesterov = true}));
  EXPECT_EQ(job.lr_schedule, (LrScheduleOptions{"step", 12, 34, 0.5, 0.125}));
  const auto graph = build_graph(job, features_of(job.data));
  ASSERT_TRUE(graph.is_ok()) << graph.status().message();
  const std::vector<DenseRange> ranges = dense_ranges(job, {graph.value()});
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].optimizer, job.dense_optimizer);
  EXPECT_EQ(ranges[0].lr_scale, 2.0F);
}

TEST(Job, DeterministicMeansNoPullAhead) {
  const Job job = parse("deterministic: true\nthreads: 8\npull_ahead: 4\n" + std::string(kSmall));
  EXPECT_TRUE(job.deterministic);
  EXPECT_EQ(job.threads, 8U) << "they do not show in the model";
  EXPECT_EQ(job.pull_ahead, 0U);
}

TEST(Job, AnchorsAndAliasesWork) {
  const Job job = parse("dense_optimizer: &o {rule: sgd, lr: 0.5}\n" + std::string(kSmall) +
                        "    - {name: e, op: embedding, table: t}\n"
                        "tables: [{name: t, optimizer: *o}]\n");
  ASSERT_EQ(job.tables.size(), 1U);
  EXPECT_EQ(job.tables[0].optimizer, job.dense_optimizer);
}

TEST(Job, AcceptsWindowsLineEndsAndByteOrderMark) {
  std::string text = "\xEF\xBB\xBF";
  for (const char* c = kSmall; *c != '\0'; ++c) {
    if (*c == '\n') text += '\r';
    text += *c;
  }
  EXPECT_EQ(parse(text).layers.size(), 2U);
}

TEST(Job, ExamplesAreValid) {
  for (const std::string name : {"ctr_dnn", "lr", "counting", "deepfm", "dcn_v2"}) {
    const std::string path = FLUX_SOURCE_DIR "/examples/" + name + "/job.yaml";
    const Result<Job> job = load_job(path, {});
    ASSERT_TRUE(job.is_ok()) << job.status().message();
    EXPECT_EQ(job.value().name, name);
    EXPECT_EQ(job.value().output, "out/" + name);
    const auto graph = build_graph(job.value(), features_of(job.value().data));
    EXPECT_TRUE(graph.is_ok()) << graph.status().message();
  }
}

TEST(Job, MessageShowsLineCaretAndWhatIsAllowed) {
  EXPECT_EQ(refusal("checkpoint:\n    keeep: 3\n" + std::string(kSmall)),
            "job.yaml:2:5: unknown field 'keeep', did you mean 'keep'?\n"
            "    2 |     keeep: 3\n"
            "      |     ^^^^^\n"
            "    allowed here: every_s, keep, full_every");
}

TEST(Job, MessageCutsLongLinesAroundTheCaret) {
  const std::string message = refusal("threads: 1 # " + std::string(200, 'x') +
                                      "\ndense_optimizer: " + std::string(150, ' ') + "oops" +
                                      std::string(150, 'y') + "\n" + kSmall);
  EXPECT_TRUE(message.starts_with("job.yaml:2:168: 'dense_optimizer' must be a map, not 'oopsyyy"))
      << message;
  EXPECT_NE(message.find("\n    2 | ..." + std::string(60, ' ') + "oopsyyy"), std::string::npos)
      << message;
  EXPECT_NE(message.find("yyy...\n      |    " + std::string(60, ' ') + "^^^^"), std::string::npos)
      << message;
}

TEST(Job, ShowsAtMostTwentyProblems) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += fmt::format("nonsense_{}: 1\n", i);
  const std::string message = refusal(text + kSmall);
  EXPECT_NE(message.find("'nonsense_19'"), std::string::npos);
  EXPECT_EQ(message.find("'nonsense_20'"), std::string::npos);
  EXPECT_TRUE(message.ends_with("\nand 30 more")) << message;
}

TEST(Job, SizeDepthAndCountAreLimited) {
  EXPECT_NE(refusal(std::string(kJobBytesMax + 1, '#')).find("job.yaml:1:1: 1.0 MiB is too large"),
            std::string::npos);
  std::string dashes;
  for (size_t i = 0; i < kJobBytesMax / 2; ++i) dashes += "- ";
  EXPECT_NE(refusal(dashes).find("nested deeper than 32 levels"), std::string::npos);
  EXPECT_NE(refusal(std::string(kJobBytesMax, '[')).find("job.yaml:1:1: "), std::string::npos);
  EXPECT_NE(refusal(std::string(kJobBytesMax, '{')).find("job.yaml:1:1: "), std::string::npos);
  std::string many = "x: [";
  for (size_t i = 0; i < kYamlNodesMax + 1; ++i) many += "a,";
  EXPECT_NE(refusal(many + "]").find("more than 100000 values"), std::string::npos);
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    laughs += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n",
                          i, i - 1);
  }
  EXPECT_NE(refusal(laughs).find("more than 100000 values"), std::string::npos);
}

TEST(Job, FilesThatCannotBeRead) {
  const std::string folder = ::testing::TempDir() + "flux_job_test";
  std::filesystem::create_directories(folder);
  const Status missing = load_job(folder + "/none.yaml", {}).status();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.message().find(folder + "/none.yaml"), std::string::npos);
  const Status directory = load_job(folder, {}).status();
  EXPECT_EQ(directory.message(), folder + ": is a folder, not a job file");
  const std::string path = folder + "/job.yaml";
  std::ofstream(path) << kSmall;
  EXPECT_EQ(load_job(folder, {}).status().message(),
            folder + ": is a folder, not a job file, did you mean '" + path + "'?");
  EXPECT_TRUE(load_job(path, {}).is_ok());
  std::ofstream(folder + "/data.tsv") << std::string(2 << 20, '7');
  EXPECT_EQ(load_job(folder + "/data.tsv", {}).status().message(),
            folder +
                "/data.tsv: is 2.0 MiB, too large for a job file, which has at most 1.0 MiB; is it "
                "data? flux data head shows that");
  if (::geteuid() != 0) {
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
    EXPECT_EQ(load_job(path, {}).status().code(), Code::kIo);
  }
  std::filesystem::remove_all(folder);
}

TEST(Job, AnEndlessFileIsRefused) {
  const Status status = load_job("/dev/zero", {}).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("too large"), std::string::npos);
}

TEST(BuildGraph, ErrorsCarryThePlaceOfTheLayer) {
  Job job = parse(kSmall);
  job.layers[0].inputs = {"nowhere"};
  const auto graph = build_graph(job, features_of(job.data));
  ASSERT_FALSE(graph.is_ok());
  EXPECT_NE(graph.status().message().find("job.yaml:5:7"), std::string::npos)
      << graph.status().message();
}

TEST(BuildGraph, AModelWithoutLossNamesTheFile) {
  Job job = parse(kSmall);
  job.layers.pop_back();
  const auto graph = build_graph(job, features_of(job.data));
  ASSERT_FALSE(graph.is_ok());
  EXPECT_NE(graph.status().message().find("job.yaml"), std::string::npos);
}

}  // namespace
}  // namespace flux
