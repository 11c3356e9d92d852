// The bytes of an evaluated batch; docs/internals/messages.md draws them.
#include <algorithm>
#include <vector>

#include "flux/base/bytes.h"
#include "flux/metrics/metric_set.h"

namespace flux {
namespace {

constexpr uint8_t kVersion = 1;
enum Parts : uint8_t {
  kWeights = 1,
  kGroups = 2,
  kRealLabels = 4,
  kClassNumbers = 8,
  kAllParts = 15
};

bool is_class(float label) {
  return label == 0 || label == 1;
}

template <typename T>
void put_all(ByteWriter* out, std::span<const T> values) {
  out->bytes(values.data(), values.size_bytes());
}

void put_labels(ByteWriter* out, std::span<const float> labels, bool real) {
  if (real) return put_all(out, labels);
  std::vector<uint8_t> bits((labels.size() + 7) / 8);
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == 1) bits[i / 8] |= static_cast<uint8_t>(1U << (i % 8));
  put_all<uint8_t>(out, bits);
}

void put_keyed(ByteWriter* out, const KeyedBatch& one) {
  const ScoredBatch& b = one.batch;
  const bool real = !std::all_of(b.labels.begin(), b.labels.end(), is_class);
  out->text(one.key.head);
  out->text(one.key.slice);
  out->put<uint32_t>(static_cast<uint32_t>(b.predictions.size()));
  out->put<uint8_t>(
      static_cast<uint8_t>((b.weights.empty() ? 0 : kWeights) | (b.groups.empty() ? 0 : kGroups) |
                           (real ? kRealLabels : 0) | (b.class_numbers ? kClassNumbers : 0)));
  put_all(out, b.predictions);
  put_labels(out, b.labels, real);
  put_all(out, b.weights);
  put_all(out, b.groups);
}

// The columns of one KeyedBatch, on their own: bytes may lie anyhow.
struct Columns {
  MetricKey key;
  std::vector<float> predictions, labels, weights;
  std::vector<uint64_t> groups;
  bool class_numbers = false;
  KeyedBatch view() const { return {key, {predictions, labels, weights, groups, class_numbers}}; }
};

template <typename T>
void get_all(ByteReader* in, size_t n, std::vector<T>* out) {
  const char* p = in->take(n * sizeof(T));
  if (p == nullptr) return;
  out->resize(n);
  if (n > 0) std::memcpy(out->data(), p, n * sizeof(T));
}

void get_labels(ByteReader* in, size_t n, bool real, std::vector<float>* out) {
  if (real) return get_all(in, n, out);
  std::vector<uint8_t> bits;
  get_all(in, (n + 7) / 8, &bits);
  if (!in->ok()) return;
  out->resize(n);
  for (size_t i = 0; i < n; ++i) (*out)[i] = static_cast<float>((bits[i / 8] >> (i % 8)) & 1);
}

Status get_keyed(ByteReader* in, Columns* out) {
  out->key.head = in->text(kScoredNameMax);
  out->key.slice = in->text(kScoredNameMax);
  const auto n = in->get<uint32_t>();
  const auto parts = in->get<uint8_t>();
  if (!in->ok() || n > kScoredExamplesMax || parts > kAllParts)
    return invalid("an evaluated batch that cannot be read");
  out->class_numbers = (parts & kClassNumbers) != 0;
  get_all(in, n, &out->predictions);
  get_labels(in, n, (parts & kRealLabels) != 0, &out->labels);
  if ((parts & kWeights) != 0) get_all(in, n, &out->weights);
  if ((parts & kGroups) != 0) get_all(in, n, &out->groups);
  return in->ok() ? Status::ok() : invalid("an evaluated batch that is cut off");
}

}  // namespace

std::string encode_scored(uint32_t examples, double loss_sum, std::span<const KeyedBatch> batches) {
  ByteWriter out;
  out.put<uint8_t>(kVersion);
  out.put<uint32_t>(examples);
  out.put<double>(loss_sum);
  out.put<uint32_t>(static_cast<uint32_t>(batches.size()));
  for (const KeyedBatch& one : batches) put_keyed(&out, one);
  return out.take();
}

Status MetricSet::add_encoded(std::string_view bytes) {
  ByteReader in(bytes);
  const auto version = in.get<uint8_t>();
  const auto examples = in.get<uint32_t>();
  const auto loss_sum = in.get<double>();
  const auto keys = in.get<uint32_t>();
  if (!in.ok() || version != kVersion || keys > kScoredKeysMax)
    return invalid("an evaluated batch of version {} with {} heads and slices", version, keys);
  std::vector<Columns> columns(keys);
  for (Columns& one : columns) FLUX_RETURN_IF_ERROR(get_keyed(&in, &one));
  if (in.left() != 0) return invalid("an evaluated batch with {} bytes too many", in.left());
  std::vector<KeyedBatch> batches;
  for (const Columns& one : columns) batches.push_back(one.view());
  return add(examples, loss_sum, batches);
}

}  // namespace flux
