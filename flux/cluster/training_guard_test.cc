// The guard against simulated trainings: well ones it must not warn of, sick ones it must name.
#include "flux/cluster/training_guard.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace flux {
namespace {

constexpr uint32_t kBatch = 200, kBatches = 8;  // of a piece

// A training as its predictions: what an example's truth is, and what is predicted of it.
struct Training {
  std::function<double(double when, std::mt19937_64&)> truth;                    // a logit
  std::function<double(double when, double truth, std::mt19937_64&)> predicted;  // a logit
  double examples = 100'000;
  uint64_t seed = 1;
};

double normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}

double rate(double logit) {
  return 1 / (1 + std::exp(-logit));
}

// As worker/batch_health.cc sums it, with the truth's mean for a constant.
void add_batch(const Training& t, double when, double mean, std::mt19937_64& random,
               HealthPiece* piece) {
  HeadHealth& head = piece->heads[0];
  double loss = 0, constant = 0;
  for (uint32_t i = 0; i < kBatch; ++i) {
    const double truth = t.truth(when, random);
    const double p = std::clamp(rate(t.predicted(when, truth, random)), 1e-7, 1 - 1e-7);
    const double y = std::uniform_real_distribution<double>()(random) < rate(truth) ? 1 : 0;
    loss -= std::log(y == 1 ? p : 1 - p);
    constant -= std::log(y == 1 ? mean : 1 - mean);
    head.label += y;
    head.label_squares += y;
    head.prediction += p;
    head.prediction_squares += p * p;
    head.product += p * y;
    if (const double doubt = std::min(p, 1 - p); doubt < kSureWithin) {
      ++head.sure;
      head.sure_expected += doubt;
      head.sure_wrong += std::abs(p - y) > 0.5 ? 1 : 0;
    }
  }
  head.examples += kBatch;
  ++head.batches;
  head.loss += loss;
  head.constant += constant;
  head.gap_squares += (loss - constant) * (loss - constant);
  piece->examples += kBatch;
  ++piece->batches;
  piece->loss += loss;
}

double mean_rate(const Training& t) {
  std::mt19937_64 random(99);
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) sum += rate(t.truth(0.5, random));
  return sum / 20'000;
}

// The warnings of the whole training, "" if there are none.
std::string told(const Training& t, TrainingGuard* guard) {
  std::mt19937_64 random(t.seed);
  const double mean = mean_rate(t);
  std::string out;
  uint64_t number = 0;
  for (double seen = 0; seen < t.examples; seen += kBatch * kBatches) {
    HealthPiece piece;
    piece.number = ++number;
    piece.heads.resize(1);
    for (uint32_t b = 0; b < kBatches; ++b) add_batch(t, seen / t.examples, mean, random, &piece);
    for (const TrainingWarning& warning : guard->take(piece)) out += warning.id + " ";
  }
  return out;
}

std::string told(const Training& t) {
  TrainingGuard guard;
  return told(t, &guard);
}

double plain_truth(double, std::mt19937_64& random) {
  return normal(random);
}

TEST(TrainingGuard, AGoodTrainingIsNotWarnedOf) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Training t{plain_truth, nullptr, 100'000, seed};
    t.predicted = [](double when, double truth, std::mt19937_64& random) {
      return truth * std::min(1.0, 4 * when) + 0.3 * normal(random);
    };
    EXPECT_EQ(told(t), "");
  }
}

TEST(TrainingGuard, LabelsOfAThousandthAndASlowStart) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Training t{nullptr, nullptr, 300'000, seed};
    t.truth = [](double, std::mt19937_64& random) { return -7.4 + normal(random); };
    // From 1/2 down to the rate, over most of the run.
    t.predicted = [](double when, double truth, std::mt19937_64&) {
      return std::max(-7.0, -10 * when) + 0.3 * (truth + 7.4);
    };
    EXPECT_EQ(told(t), "");
  }
}

TEST(TrainingGuard, DriftIsNoSickness) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Training t{nullptr, nullptr, 200'000, seed};
    t.truth = [](double when, std::mt19937_64& random) {
      return std::sin(12 * when) + normal(random);
    };
    // Always an eighth of a turn late.
    t.predicted = [](double when, double truth, std::mt19937_64&) {
      return truth - std::sin(12 * when) + std::sin(12 * when - 0.8);
    };
    EXPECT_EQ(told(t), "");
  }
}

TEST(TrainingGuard, AResumedTrainingThatLearnsNothingMoreIsWell) {
  Training t{plain_truth, nullptr, 200'000, 3};
  t.predicted = [](double, double truth, std::mt19937_64&) { return truth; };
  EXPECT_EQ(told(t), "");
}

TEST(TrainingGuard, LabelsThatBelongToOtherExamples) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Training t{plain_truth, nullptr, 100'000, seed};
    t.predicted = [](double, double, std::mt19937_64& random) { return 0.05 * normal(random); };
    EXPECT_EQ(told(t), "not_learning ");
  }
}

TEST(TrainingGuard, NothingMoves) {
  Training t{plain_truth, nullptr, 100'000, 1};
  t.predicted = [](double, double, std::mt19937_64&) { return 0.0; };
  EXPECT_EQ(told(t), "not_learning ");
}

// Gradients of age 64 with too high a rate: each step answers an error that is 64 steps old, so the
// predictions swing, and further with each swing.
TEST(TrainingGuard, GradientsThatAreTooOld) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Training t{plain_truth, nullptr, 100'000, seed};
    std::vector<double> bias(1, 0.0);
    t.predicted = [bias](double when, double truth, std::mt19937_64&) mutable {
      const double step = when * 100'000 / kBatch;
      while (static_cast<double>(bias.size()) <= step) {
        const double old = bias[bias.size() > 64 ? bias.size() - 64 : 0];
        bias.push_back(bias.back() + 0.06 * (0.5 - rate(old + 0.5)) * 4);
      }
      return 0.5 * truth + bias.back();
    };
    EXPECT_NE(told(t).find("worse_than_constant"), std::string::npos);
  }
}

TEST(TrainingGuard, LogitsThatBlowUp) {
  Training t{plain_truth, nullptr, 100'000, 1};
  t.predicted = [](double when, double truth, std::mt19937_64& random) {
    return truth + 60 * when * normal(random);
  };
  const std::string warnings = told(t);
  EXPECT_NE(warnings.find("overconfident"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("worse_than_constant"), std::string::npos) << warnings;
}

TEST(TrainingGuard, AWarningIsSaidOnceAndEnds) {
  Training t{plain_truth, nullptr, 200'000, 1};
  t.predicted = [](double when, double truth, std::mt19937_64& random) {
    return when > 0.3 && when < 0.6 ? 8 * normal(random) : truth;
  };
  TrainingGuard guard;
  const std::string warnings = told(t, &guard);
  const std::string id = "worse_than_constant ";
  ASSERT_NE(warnings.find(id), std::string::npos);
  EXPECT_EQ(warnings.find(id), warnings.rfind(id));
  EXPECT_FALSE(guard.suspect());
  EXPECT_FALSE(guard.warnings().front().active);
}

HealthPiece plain_piece(uint64_t number, double loss, double norm = 1) {
  HealthPiece piece;
  piece.number = number;
  piece.examples = kBatch * kBatches;
  piece.batches = kBatches;
  piece.loss = loss * static_cast<double>(piece.examples);
  piece.loss_squares = loss * loss * kBatches;
  piece.norms = 1;
  piece.norm = norm;
  return piece;
}

TEST(TrainingGuard, ALossWithoutALabelThatRises) {
  TrainingGuard guard({"join", "update"});
  std::string out;
  for (uint64_t i = 1; i <= 40; ++i) {
    HealthPiece piece = plain_piece(i, i < 20 ? 1.0 : 3.0);
    piece.phase = 1;
    for (const TrainingWarning& w : guard.take(piece)) out += w.phase + " " + w.id + " ";
  }
  EXPECT_EQ(out, "update loss_rises ");
  EXPECT_TRUE(guard.suspect());
}

TEST(TrainingGuard, AGradientThatBlowsUp) {
  TrainingGuard guard;
  std::string out;
  for (uint64_t i = 1; i <= 40; ++i)
    for (const TrainingWarning& w : guard.take(plain_piece(i, i < 20 ? 1 : 1.6, i < 20 ? 1 : 50)))
      out += w.id + " ";
  EXPECT_EQ(out, "gradient_blow_up ");
}

TEST(TrainingGuard, DeadUnits) {
  for (const uint32_t dead : {40U, 60U}) {
    TrainingGuard guard;
    std::string out;
    for (uint64_t i = 1; i <= 20; ++i) {
      HealthPiece piece = plain_piece(i, 1);
      piece.layers = {{"h1", 64, dead}, {"h2", 4, 4}};  // few units: no judgement
      for (const TrainingWarning& w : guard.take(piece)) out += w.id + " " + w.part + " ";
    }
    EXPECT_EQ(out, dead == 60 ? "dead_units h1 " : "");
  }
}

TEST(TrainingGuard, TestsWithinNoise) {
  TrainingGuard guard;
  const auto ids = [&](const TestedHead& head) {
    std::string out;
    for (const TrainingWarning& w : guard.tested({&head, 1})) out += w.id + " ";
    return out;
  };
  EXPECT_EQ(ids({"", "", 150, 0.5, 0.69, 0.5}), "");      // too few
  EXPECT_EQ(ids({"", "", 60'000, 0.6, 0.7, 0.001}), "");  // 60 of one class
  EXPECT_EQ(ids({"", "", 20'000, 0.55, 0.8, 0.5}), "");   // no log loss is known to be minimised
  EXPECT_EQ(ids({"", "", 20'000, 0.505, 0.69, 0.5}), "test_auc_of_chance ");
  EXPECT_TRUE(guard.suspect());
  EXPECT_EQ(ids({"", "", 20'000, 0.7, 0.6, 0.5}), "");
  EXPECT_FALSE(guard.suspect());
  Training t{plain_truth, nullptr, 20'000, 1};
  t.predicted = [](double, double truth, std::mt19937_64&) { return truth; };
  EXPECT_EQ(told(t, &guard), "");
  EXPECT_EQ(ids({"", "", 20'000, 0.7, 0.75, 0.5}), "test_worse_than_constant ");
  EXPECT_EQ(ids({"", "", 20'000, {}, {}, {}}), "");
}

TEST(TrainingGuard, HostilePiecesChangeNothing) {
  TrainingGuard guard;
  for (uint64_t i = 1; i < 100; ++i) {
    HealthPiece piece = plain_piece(i, std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(guard.take(piece).empty());
    piece = plain_piece(i, 1);
    piece.phase = 7;
    piece.heads.resize(1000);
    EXPECT_TRUE(guard.take(piece).empty());
  }
  EXPECT_FALSE(guard.suspect());
}

TEST(TrainingGuard, WarningsAreBounded) {
  TrainingGuard guard;
  for (uint64_t i = 1; i < 2000; ++i) {
    HealthPiece piece = plain_piece(i, 1);
    for (uint32_t l = 0; l < kHealthPartsMax; ++l)
      piece.layers.push_back({fmt::format("h{}", l), 64, i / 100 % 2 == 0 ? 64U : 0U});
    guard.take(piece);
  }
  EXPECT_EQ(guard.warnings().size(), 64U);
}

}  // namespace
}  // namespace flux
