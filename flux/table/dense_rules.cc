#include "flux/table/dense_rules.h"

#include <algorithm>

#include "flux/base/text.h"

namespace flux {
namespace {

std::vector<DenseRange> joined(const std::vector<DenseRange>& ranges) {
  std::vector<DenseRange> runs;
  for (const DenseRange& range : ranges) {
    if (range.size == 0) continue;
    const bool same = !runs.empty() && runs.back().optimizer == range.optimizer &&
                      runs.back().lr_scale == range.lr_scale;
    if (same) {
      runs.back().size += range.size;
    } else {
      runs.push_back(range);
    }
  }
  return runs;
}

}  // namespace

Result<std::shared_ptr<const DenseRules>> DenseRules::make(const std::vector<DenseRange>& ranges) {
  auto rules = std::make_shared<DenseRules>();
  for (const DenseRange& settings : joined(ranges)) {
    Run run;
    run.range = {rules->size_, rules->size_ + settings.size};
    run.settings = settings;
    FLUX_ASSIGN_OR_RETURN(run.rule, make_optimizer(settings.optimizer));
    if (settings.optimizer.rule == "summary") rules->sums_.push_back(run.range);
    rules->size_ += settings.size;
    rules->runs_.push_back(std::move(run));
  }
  return std::shared_ptr<const DenseRules>(std::move(rules));
}

std::vector<DensePiece> DenseRules::pieces(size_t offset, size_t size) const {
  FLUX_CHECK(offset + size <= size_, "dense weights {}..{} of {}", offset, offset + size, size_);
  std::vector<DensePiece> pieces;
  for (const Run& run : runs_) {
    const size_t begin = std::max<size_t>(run.range.begin, offset);
    const size_t end = std::min<size_t>(run.range.end, offset + size);
    if (begin < end) pieces.push_back({run.rule.get(), end - begin, run.settings.lr_scale});
  }
  return pieces;
}

std::string to_string(const std::vector<DenseRange>& ranges) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (const DenseRange& run : joined(ranges)) {
    parts.push_back(fmt::format("{}..{} {}", begin, begin + run.size, run.optimizer.rule));
    if (run.lr_scale != 1) parts.back() += fmt::format(" x{}", run.lr_scale);
    begin += run.size;
  }
  return join(parts, ", ");
}

}  // namespace flux
