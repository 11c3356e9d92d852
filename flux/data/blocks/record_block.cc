#include "flux/data/blocks/record_block.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <immintrin.h>

#include "flux/data/criteo.h"
#include "flux/data/label_check.h"
#include "flux/data/one_key.h"

namespace flux {
namespace {

using block_file::ChunkHead;
using block_file::IndexEntry;

template <typename T>
T load_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Of keys with or without values: as constants, which costs no division.
bool has_whole_keys(uint64_t bytes, bool values) {
  return values ? bytes % 12 == 0 : bytes % 8 == 0;
}

uint32_t count_at(const char* counts, uint32_t count_bytes, uint32_t slot) {
  switch (count_bytes) {
    case 1:
      return static_cast<unsigned char>(counts[slot]);
    case 2:
      return load_at<uint16_t>(counts + size_t{slot} * 2);
    default:
      return load_at<uint32_t>(counts + size_t{slot} * 4);
  }
}

// Where the slots of a record begin, if its keys come from `at` on; how many keys it says.
template <typename Count>
uint64_t place_slots(const char* counts, uint32_t slots, uint32_t at, uint32_t* begin) {
  uint64_t sum = 0;
  for (uint32_t s = 0; s < slots; ++s) {
    begin[s] = at + static_cast<uint32_t>(sum);
    sum += load_at<Count>(counts + size_t{s} * sizeof(Count));
  }
  return sum;
}

uint64_t place_slots(const char* counts, uint32_t count_bytes, uint32_t slots, uint32_t at,
                     uint32_t* begin) {
  if (count_bytes == 1) [[likely]]
    return place_slots<uint8_t>(counts, slots, at, begin);
  if (count_bytes == 2) return place_slots<uint16_t>(counts, slots, at, begin);
  return place_slots<uint32_t>(counts, slots, at, begin);
}

}  // namespace

RecordBlock::RecordBlock(std::shared_ptr<const RecordReading> reading, const DataBlock& block,
                         uint32_t batch_size, std::shared_ptr<BufferPool> pool)
    : reading_(std::move(reading)),
      block_(block),
      batch_size_(batch_size),
      pool_(std::move(pool)),
      fixed_bytes_(reading_->file->schema().fixed_bytes()),
      key_bytes_(reading_->file->schema().key_bytes()),
      slots_(static_cast<uint32_t>(reading_->file->schema().slots.size())),
      many_keys_(reading_->file->schema().many_keys),
      values_(reading_->file->schema().values),
      bytes_(pool_->take(block.end - block.begin)) {}

RecordBlock::~RecordBlock() {
  pool_->give(std::move(bytes_));
}

Status RecordBlock::corrupt(const IndexEntry& chunk, const std::string& what) const {
  return error(
      Code::kCorrupt,
      "{}: the chunk at byte {} (records {} to {}) is damaged: {}; copy the file again, or "
      "convert it anew",
      reading_->file->path(), chunk.offset, chunk.first_record + 1,
      chunk.first_record + chunk.records, what);
}

Status RecordBlock::broken(uint32_t record) const {
  return error(Code::kCorrupt, "{}: record {} has other numbers of keys than its size allows",
               reading_->file->path(), number_in_file(record) + 1);
}

Status RecordBlock::refuse(uint32_t record, const std::string& what) const {
  return invalid("{}: record {}: {}", reading_->file->path(), number_in_file(record) + 1, what);
}

uint64_t RecordBlock::number_in_file(uint32_t record) const {
  return block_.first_record - reading_->first_record + record;
}

Status RecordBlock::load(std::vector<uint32_t> order) {
  order_ = std::move(order);
  const std::string& path = reading_->file->path();
  const uint64_t first = number_in_file(0);
  if (first + block_.records > reading_->file->records())
    return invalid("{}: has {} records where {} were found; start afresh", path,
                   reading_->file->records(), first + block_.records);
  const std::span<const IndexEntry> chunks = reading_->file->chunks_of(first, block_.records);
  const uint64_t end =
      chunks.back().offset + sizeof(ChunkHead) + uint64_t{chunks.back().payload_bytes};
  if (chunks.front().offset != block_.begin || end != block_.end)
    return invalid("{}: was written anew since it was cut; start afresh", path);
  FLUX_RETURN_IF_ERROR(reading_->file->file().read_at(block_.begin, bytes_.data(), bytes_.size()));
  places_.reserve(block_.records);
  for (const IndexEntry& chunk : chunks)
    FLUX_RETURN_IF_ERROR(load_chunk(chunk, bytes_.data() + (chunk.offset - block_.begin)));
  return Status::ok();
}

Status RecordBlock::load_chunk(const IndexEntry& chunk, char* bytes) {
  const auto head = load_at<ChunkHead>(bytes);
  const char* payload = bytes + sizeof head;
  if (head.magic != block_file::kChunkMagic || head.head_hash != head.computed_hash() ||
      head.records != chunk.records || head.payload_bytes != chunk.payload_bytes ||
      head.payload_hash != chunk.payload_hash)
    return corrupt(chunk, "its head is not what the index says");
  if (hash_bytes(payload, chunk.payload_bytes) != chunk.payload_hash)
    return corrupt(chunk, "its check sum differs");
  if (head.count_bytes != 1 && head.count_bytes != 2 && head.count_bytes != 4)
    return corrupt(chunk, fmt::format("numbers of keys of {} bytes", head.count_bytes));
  return place_records(chunk, payload, head.count_bytes);
}

Status RecordBlock::place_records(const IndexEntry& chunk, const char* payload,
                                  uint32_t count_bytes) {
  const uint64_t table = (uint64_t{chunk.records} + 1) * sizeof(uint32_t);
  if (table > chunk.payload_bytes) return corrupt(chunk, "it ends within its table");
  const char* area = payload + table;
  const uint64_t area_bytes = chunk.payload_bytes - table;
  const uint64_t first = number_in_file(0), end = first + block_.records;
  const uint64_t before_keys = fixed_bytes_ + (many_keys_ ? uint64_t{slots_} * count_bytes : 0);
  uint64_t begin = load_at<uint32_t>(payload);
  for (uint32_t r = 0; r < chunk.records; ++r) {
    const uint64_t next = load_at<uint32_t>(payload + (size_t{r} + 1) * sizeof(uint32_t));
    const uint64_t size = next - begin;
    const bool good = next >= begin && next <= area_bytes && size >= before_keys &&
                      has_whole_keys(size - before_keys, values_) &&
                      (many_keys_ || size == before_keys + uint64_t{slots_} * key_bytes_);
    if (!good) return corrupt(chunk, fmt::format("record {} of it has a wrong size", r + 1));
    const uint64_t number = chunk.first_record + r;
    if (number >= first && number < end)
      places_.push_back({area + begin, static_cast<uint32_t>(size), count_bytes});
    begin = next;
  }
  return Status::ok();
}

std::span<const uint32_t> RecordBlock::records_of(uint32_t batch) const {
  const uint64_t begin = uint64_t{batch} * batch_size_;
  FLUX_CHECK(begin < order_.size(), "batch {} of a block of {} records", batch, order_.size());
  return std::span(order_).subspan(begin, std::min<uint64_t>(batch_size_, order_.size() - begin));
}

uint64_t RecordBlock::bytes_of_keys(const Place& place) const {
  return place.bytes - fixed_bytes_ - (many_keys_ ? slots_ * place.count_bytes : 0);
}

void RecordBlock::size_batch(std::span<const uint32_t> records, Batch* out) const {
  const size_t n = records.size();
  const RecordSchema& schema = reading_->file->schema();
  const bool per_example = reading_->key_per_example;
  out->size = static_cast<uint32_t>(n);
  out->slots = per_example ? 1 : slots_;
  out->dense = static_cast<uint32_t>(schema.dense.size());
  out->labels.resize(n * schema.labels.size());
  out->dense_values.resize(n * out->dense);
  out->weights.resize(schema.weights ? n : 0);
  out->groups.resize(reading_->groups ? n : 0);
  out->begin.resize(per_example ? 0 : n * slots_ + 1);
  uint64_t keys = per_example ? n : n * slots_;
  if (many_keys_ && !per_example)
    keys = std::accumulate(
               records.begin(), records.end(), uint64_t{0},
               [this](uint64_t sum, uint32_t r) { return sum + bytes_of_keys(places_[r]); }) /
           key_bytes_;
  out->keys.resize(keys);
  out->values.resize(values_ && !per_example ? keys : 0);
  out->slices.clear();
}

void RecordBlock::read_fixed(const Place& place, size_t example, Batch* out) const {
  const RecordSchema& schema = reading_->file->schema();
  const SchemaMap& map = reading_->map;
  const char* at = place.at;
  for (size_t l = 0; l < map.labels.size(); ++l)
    out->labels[l * out->size + example] = load_at<float>(at + map.labels[l] * sizeof(float));
  at += schema.labels.size() * sizeof(float);
  if (schema.weights) {
    out->weights[example] = load_at<float>(at);
    at += sizeof(float);
  }
  if (schema.groups) {
    if (reading_->groups) out->groups[example] = load_at<uint64_t>(at);
    at += sizeof(uint64_t);
  }
  float* dense = out->dense_values.data() + example * out->dense;
  for (size_t d = 0; d < map.dense.size(); ++d)
    dense[d] = load_at<float>(at + map.dense[d] * sizeof(float));
}

bool RecordBlock::read_keys(const Place& place, size_t example, uint32_t* at, Batch* out) const {
  const char* counts = place.at + fixed_bytes_;
  const uint64_t bytes = bytes_of_keys(place);
  const char* source = place.at + (place.bytes - bytes);
  uint32_t* begin = out->begin.data() + example * slots_;
  uint64_t keys = slots_;
  if (!many_keys_) {
    std::iota(begin, begin + slots_, *at);
  } else {
    keys = place_slots(counts, place.count_bytes, slots_, *at, begin);
    if (keys * key_bytes_ != bytes) return false;
  }
  std::memcpy(out->keys.data() + *at, source, keys * sizeof(uint64_t));
  if (values_)
    std::memcpy(out->values.data() + *at, source + keys * sizeof(uint64_t), keys * sizeof(float));
  *at += static_cast<uint32_t>(keys);
  return true;
}

// The job has the slots in another order than the file.
bool RecordBlock::map_keys(const Place& place, size_t example, uint32_t* at, Batch* out) const {
  const char* counts = place.at + fixed_bytes_;
  const char* source = counts + (many_keys_ ? size_t{slots_} * place.count_bytes : 0);
  std::vector<uint64_t> begins(slots_ + 1, 0);  // of the file's slots
  for (uint32_t s = 0; s < slots_; ++s)
    begins[s + 1] = begins[s] + (many_keys_ ? count_at(counts, place.count_bytes, s) : 1);
  if (begins[slots_] * key_bytes_ != bytes_of_keys(place)) return false;
  for (uint32_t s = 0; s < slots_; ++s) {
    const uint32_t from = reading_->map.slots[s];
    const uint64_t n = begins[from + 1] - begins[from];
    out->begin[example * slots_ + s] = *at;
    std::memcpy(out->keys.data() + *at, source + begins[from] * sizeof(uint64_t),
                n * sizeof(uint64_t));
    if (values_)
      std::memcpy(out->values.data() + *at,
                  source + begins[slots_] * sizeof(uint64_t) + begins[from] * sizeof(float),
                  n * sizeof(float));
    *at += static_cast<uint32_t>(n);
  }
  return true;
}

Status RecordBlock::check_numbers(std::span<const uint32_t> records, const Batch& batch) const {
  if (const auto wrong = find_wrong_number(batch, reading_->names)) [[unlikely]]
    return refuse(records[wrong->example], wrong->text);
  if (const auto wrong = find_wrong_label(batch, reading_->label_rules)) [[unlikely]]
    return refuse(records[wrong->example], wrong->text(reading_->names.labels));
  if (const auto wrong = find_wrong_weight(batch)) [[unlikely]]
    return refuse(records[wrong->example], wrong->text());
  return Status::ok();
}

Status RecordBlock::read_batch(uint32_t batch, Batch* out) const {
  constexpr size_t kAhead = 4;
  const std::span<const uint32_t> records = records_of(batch);
  size_batch(records, out);
  uint32_t at = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    if (i + kAhead < records.size()) {
      const Place& soon = places_[records[i + kAhead]];
      for (uint32_t b = 0; b < std::min(soon.bytes, 512U); b += 64)
        _mm_prefetch(soon.at + b, _MM_HINT_T0);
    }
    const Place& place = places_[records[i]];
    read_fixed(place, i, out);
    if (reading_->key_per_example) {
      out->keys[i] = criteo_example_key(block_.first_record + records[i]);
      continue;
    }
    const bool fits =
        reading_->map.same_slots ? read_keys(place, i, &at, out) : map_keys(place, i, &at, out);
    if (!fits) return broken(records[i]);
  }
  if (!out->begin.empty()) out->begin.back() = at;
  FLUX_RETURN_IF_ERROR(check_numbers(records, *out));
  if (reading_->one_key)
    if (const auto wrong = take_one_key_each(out))
      return refuse(records[wrong->example], wrong->text(reading_->slots));
  reading_->features.apply(out);
  return Status::ok();
}

std::string RecordBlock::describe(uint32_t batch) const {
  if (uint64_t{batch} * batch_size_ >= order_.size()) return "";
  const std::span<const uint32_t> records = records_of(batch);
  const auto [low, high] = std::minmax_element(records.begin(), records.end());
  const uint64_t first = number_in_file(*low) + 1, last = number_in_file(*high) + 1;
  return last - first + 1 == records.size()
             ? fmt::format("{}: records {} to {}", reading_->file->path(), first, last)
             : fmt::format("{}: {} of records {} to {}", reading_->file->path(), records.size(),
                           first, last);
}

std::string RecordBlock::describe_example(uint32_t batch, uint32_t example) const {
  const size_t at = size_t{batch} * batch_size_ + example;
  if (example >= batch_size_ || at >= order_.size()) return "";
  return fmt::format("{}: record {}", reading_->file->path(), number_in_file(order_[at]) + 1);
}

}  // namespace flux
