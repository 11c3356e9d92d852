#include "flux/optimizer/rule_cases.h"

#include <cmath>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "flux/base/text.h"
#include "flux/optimizer/optimizer.h"
#include "flux/optimizer/settings.h"

namespace flux {
namespace {

std::vector<float> read_floats(std::istream& in) {
  std::vector<float> values;
  for (double x = 0; in >> x;) values.push_back(static_cast<float>(x));
  return values;
}

// Nothing if it is no number.
std::optional<float> read_float(const std::string& text) {
  std::istringstream in(text);
  float value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

Result<OptimizerOptions> read_options(std::istream& in) {
  OptimizerOptions options;
  in >> options.rule;
  for (std::string word; in >> word;) {
    const size_t equals = word.find('=');
    const OptimizerSetting* setting = find_optimizer_setting(word.substr(0, equals));
    if (setting == nullptr || equals == std::string::npos) return invalid("setting '{}'", word);
    const std::string value = word.substr(equals + 1);
    const std::optional<float> number = read_float(value);
    if (setting->flag == nullptr && !number) return invalid("setting '{}'", word);
    if (setting->flag != nullptr) {
      options.*setting->flag = value == "true";
    } else if (setting->number != nullptr) {
      options.*setting->number = number;
    } else {
      options.lr = *number;
    }
  }
  return options;
}

class Replay {
 public:
  Status line(size_t number, const std::string& text) {
    std::istringstream in(text);
    std::string what;
    if (!(in >> what) || what[0] == '#') return Status::ok();
    if (what == "case") return begin(in);
    if (!rule_) return invalid("'{}' before the first case", what);
    if (what == "weights") return start(in);
    if (what == "step") return step(in);
    if (what == "want") return compare(number, in);
    return invalid("'{}' is none of case, weights, step, want", what);
  }
  RuleCases result;

 private:
  Status begin(std::istream& in) {
    FLUX_ASSIGN_OR_RETURN(const OptimizerOptions options, read_options(in));
    FLUX_ASSIGN_OR_RETURN(rule_, make_optimizer(options));
    name_ = options.rule;
    ++result.cases[name_];
    return Status::ok();
  }
  Status start(std::istream& in) {
    row_ = read_floats(in);
    dim_ = row_.size();
    if (dim_ == 0) return invalid("no weights");
    row_.resize(dim_ + rule_->state_size(dim_));
    rule_->init_state(row_.data() + dim_, dim_);
    return Status::ok();
  }
  Status step(std::istream& in) {
    float scale = 1;
    in >> scale;
    const std::vector<float> gradient = read_floats(in);
    if (gradient.size() != dim_) return invalid("{} numbers for {}", gradient.size(), dim_);
    rule_->update(row_.data(), row_.data() + dim_, gradient.data(), dim_, scale);
    return Status::ok();
  }
  Status compare(size_t number, std::istream& in) {
    const std::vector<float> want = read_floats(in);
    if (want.size() != dim_) return invalid("{} numbers for {}", want.size(), dim_);
    for (size_t i = 0; i < dim_; ++i) {
      const double off = std::abs(double{row_[i]} - want[i]) / (1 + std::abs(double{want[i]}));
      ++result.numbers;
      if (off <= result.worst) continue;
      result.worst = off;
      result.worst_at =
          fmt::format("line {} ({}), weight {}: {}, not {}", number, name_, i, row_[i], want[i]);
    }
    return Status::ok();
  }

  std::unique_ptr<const Optimizer> rule_;
  std::string name_;
  size_t dim_ = 0;
  std::vector<float> row_;
};

}  // namespace

Result<RuleCases> replay_cases(std::istream& in) {
  Replay replay;
  size_t number = 0;
  for (std::string text; std::getline(in, text);) {
    const Status status = replay.line(++number, text);
    if (!status.is_ok()) return status.with_context(fmt::format("line {}", number));
  }
  return std::move(replay.result);
}

}  // namespace flux
