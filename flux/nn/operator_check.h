// check_operator(): one operator between trainable inputs and a head, held against the reference
// by check_net() in three nets: alone, with its values inside a concat, and (for every third seed)
// the latter in bf16 where the CPU has it; a loss alone, in both precisions; and for some seeds by
// several threads, which must give the same bits (members_check.h). What the test beside each
// operator calls. Pure but for the memory it takes; slow on purpose.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "flux/base/random.h"
#include "flux/nn/graph.h"

namespace flux {

struct OperatorInput {
  enum class From : unsigned char {
    kTrained,  // an fc of the data
    kData,     // the data itself, at most 16 numbers
    kMask,     // 0 or 1, by the data's sign; at most 16 numbers
  };
  uint32_t length = 1, dim = 1;
  From from = From::kTrained;
  std::string before{};  // an operator applied first, such as "exp" for positive numbers
};

struct OperatorCase {
  std::string op;
  std::vector<OperatorInput> inputs;
  std::map<std::string, AttrValue> attrs{};
  bool fp32_only = false;  // a rounding may flip the result
  // Of a loss: the sources that follow its inputs, "label" or "weight". There is no head then.
  std::vector<std::string> sources{};
  bool same_predict = true;  // CheckOptions::same_predict
};

// "" when all agree, else what differs first.
std::string check_operator(const OperatorCase& test, uint64_t seed);
// The same for `count` cases that `make` draws; the message shows the case.
std::string check_random_operators(int count, const std::function<OperatorCase(Random&)>& make);
// Why the operator refuses these inputs and attributes; "" when it does not.
std::string refusal(const OperatorCase& test);

// Draws for `make`.
inline uint32_t between(Random& random, uint32_t low, uint32_t high) {
  return low + static_cast<uint32_t>(random.below(high - low + 1));
}
inline OperatorInput mask_input(uint32_t n) {
  return {1, n, OperatorInput::From::kMask};
}

}  // namespace flux
