#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include "flux/base/status.h"
namespace flux {
struct CriteoGenOptions { uint64_t examples=0, seed=1, truth_seed=12345; };
struct CriteoGenReport { uint64_t examples=0, distinct_ids=0; double ctr=0, oracle_auc=0; };
Result<CriteoGenReport> generate_criteo(const CriteoGenOptions&, const std::string&, unsigned, const std::function<void(uint64_t)>&);
}
