#include "flux/data/criteo_truth.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "flux/base/hash.h"
#include "flux/base/random.h"

namespace flux {
namespace {

constexpr double kZipf = 1.1;
constexpr double kBias = -1.35;
constexpr double kWeightDeviation = 0.27;
constexpr double kDenseDeviation = 0.13;
constexpr double kFactorDeviation = 0.46;
constexpr std::array<std::pair<uint32_t, uint32_t>, 6> kPairs = {
    {{2, 5}, {3, 8}, {4, 9}, {6, 7}, {1, 9}, {5, 8}}};

// Streams of draws; the value only keeps them apart.
enum Stream : uint64_t { kIdWeight = 1, kDenseWeight = 2, kIdFactor = 3 };

// Of the places of a slot whose weights are not kept, those that are looked at for the mean; the
// others are met too seldom to move it.
constexpr uint32_t kMeanPlaces = 1000;

bool has_partner(uint32_t slot) {
  return std::any_of(kPairs.begin(), kPairs.end(),
                     [&](const auto& p) { return p.first == slot || p.second == slot; });
}

}  // namespace

void CriteoTruth::fill_distribution(uint32_t cardinality, Slot* slot) {
  std::vector<double> cumulative(cardinality);
  double sum = 0;
  for (uint32_t id = 0; id < cardinality; ++id)
    cumulative[id] = sum += std::pow(static_cast<double>(id) + 1.0, -kZipf);
  slot->last_draw.resize(cardinality);
  for (uint32_t id = 0; id < cardinality; ++id)
    slot->last_draw[id] = static_cast<uint32_t>(
        std::max(std::min(std::round(cumulative[id] / sum * 0x1p32), 0x1p32) - 1.0, 0.0));
  slot->last_draw.back() = UINT32_MAX;  // ends every search

  const uint32_t bits = std::bit_width(cardinality - 1);
  slot->guide_shift = 32 - bits;
  slot->guide.resize(size_t{1} << bits);
  uint32_t id = 0;
  for (uint32_t cell = 0; cell < slot->guide.size(); ++cell) {
    while (slot->last_draw[id] < (cell << slot->guide_shift)) ++id;
    slot->guide[cell] = id;
  }
}

CriteoTruth::CriteoTruth(uint64_t seed, const TruthMoment& moment) : seed_(seed) {
  for (uint32_t s = 0; s < kSlots; ++s) fill_distribution(kCardinality[s], &slots_[s]);
  move_to(moment);
}

void CriteoTruth::move_to(const TruthMoment& moment) {
  moment_ = moment;
  for (uint32_t s = 0; s < kSlots; ++s) {
    Slot& slot = slots_[s];
    const uint32_t kept = moment.still() || s < kSmallSlots ? kCardinality[s] : 0;
    slot.weight.clear();
    for (uint32_t place = 0; place < kept; ++place)
      slot.weight.push_back(draw_weight(s, {place, 0}));
    if (!has_partner(s)) continue;
    slot.factor.resize(kCardinality[s]);
    for (uint32_t place = 0; place < kCardinality[s]; ++place)
      for (uint32_t k = 0; k < kRank; ++k)
        slot.factor[place][k] = static_cast<float>(
            kFactorDeviation * draw_normal(kIdFactor, s, uint64_t{place} * kRank + k));
  }
  for (uint32_t d = 0; d < kDense; ++d)
    dense_weight_[d] = kDenseDeviation * draw_normal(kDenseWeight, d, 0);
  bias_ = kBias + moment.lift - expected_id_part();
}

double CriteoTruth::draw_normal(uint64_t stream, uint64_t slot, uint64_t index) const {
  return moment_.turned(seed_, [&](uint64_t seed) {
    return Random(hash_pair(hash_pair(hash_pair(seed, stream), slot), index)).normal();
  });
}

float CriteoTruth::draw_weight(uint32_t slot, const Id& id) const {
  const uint64_t index = uint64_t{id.life} << 32 | id.place;
  return static_cast<float>(kWeightDeviation * draw_normal(kIdWeight, slot, index));
}

double CriteoTruth::place_weight(uint32_t slot, uint32_t place) const {
  if (!slots_[slot].weight.empty()) return slots_[slot].weight[place];
  const TruthMoment::Holder holder = moment_.holder(seed_, slot, place);
  return (1 - holder.handed) * draw_weight(slot, {place, holder.old}) +
         holder.handed * draw_weight(slot, {place, holder.old + 1});
}

void CriteoTruth::draw(Random* random, Ids* ids) const {
  static_assert(kSlots % 2 == 0);
  for (uint32_t s = 0; s < kSlots; s += 2) {
    const uint64_t draw = random->next();
    (*ids)[s] = {sample(s, static_cast<uint32_t>(draw >> 32)), 0};
    (*ids)[s + 1] = {sample(s + 1, static_cast<uint32_t>(draw)), 0};
  }
  if (!moment_.lives) return;
  for (uint32_t s = kSmallSlots; s < kSlots; ++s) {
    Id& id = (*ids)[s];
    const TruthMoment::Holder holder = moment_.holder(seed_, s, id.place);
    id.life = holder.old + (random->chance(holder.handed) ? 1 : 0);
  }
}

double CriteoTruth::expected_id_part() const {
  double sum = 0;
  std::array<std::array<double, kRank>, kSlots> factor{};  // mean per slot
  for (uint32_t s = 0; s < kSlots; ++s) {
    const Slot& slot = slots_[s];
    double before = -1;  // the last draw of the place before
    const uint32_t places =
        slot.weight.empty() ? std::min(kCardinality[s], kMeanPlaces) : kCardinality[s];
    for (uint32_t place = 0; place < places; ++place) {
      const double probability = (slot.last_draw[place] - before) * 0x1p-32;
      before = slot.last_draw[place];
      sum += probability * place_weight(s, place);
      if (slot.factor.empty()) continue;
      for (uint32_t k = 0; k < kRank; ++k) factor[s][k] += probability * slot.factor[place][k];
    }
  }
  // Slots are drawn independently, so the mean of a product is the product of the means.
  for (const auto& [p, q] : kPairs)
    for (uint32_t k = 0; k < kRank; ++k) sum += factor[p][k] * factor[q][k];
  return sum;
}

double CriteoTruth::logit(std::span<const double, kDense> dense, const Ids& ids) const {
  double sum = bias_;
  for (uint32_t d = 0; d < kDense; ++d) sum += (dense[d] - 1.0) * dense_weight_[d];
  for (uint32_t s = 0; s < kSlots; ++s) sum += weight(s, ids[s]);
  for (const auto& [p, q] : kPairs) {
    const auto& left = slots_[p].factor[ids[p].place];
    const auto& right = slots_[q].factor[ids[q].place];
    for (uint32_t k = 0; k < kRank; ++k) sum += static_cast<double>(left[k]) * right[k];
  }
  return sum;
}

uint32_t CriteoTruth::token(uint32_t slot, uint32_t place, uint32_t life) {
  // Odd multipliers and shifted exclusive-ors can each be undone, hence so can the whole.
  static_assert(*std::max_element(kCardinality.begin(), kCardinality.end()) <= 1U << 19);
  static_assert(kSlots < 1U << 5);
  uint32_t x = (life << 24) | ((slot + 1) << 19) | place;
  x ^= x >> 15;
  x *= 0x2c1b3c6dU;
  x ^= x >> 12;
  x *= 0x297a2d39U;
  x ^= x >> 15;
  return x;
}

}  // namespace flux
