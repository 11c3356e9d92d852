// Block files: whatever a file says of itself, reading all of its records ends, in a Status or in
// batches that are whole. Check sums are mended first, so that the fuzzer gets behind them.
// links: data storage base
#include <cstring>
#include <string>

#include "flux/data/blocks/layout.h"
#include "flux/data/tools/guess_format.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/read_all.h"

namespace {

using flux::block_file::ChunkHead;
using flux::block_file::Head;
using flux::block_file::IndexEntry;
using flux::block_file::Tail;

template <typename T>
T load(const std::string& bytes, size_t at) {
  T out;
  std::memcpy(static_cast<void*>(&out), bytes.data() + at, sizeof out);
  return out;
}

template <typename T>
void store(const T& value, size_t at, std::string* bytes) {
  std::memcpy(bytes->data() + at, static_cast<const void*>(&value), sizeof value);
}

// Of a chunk or an index; its payload's hash.
uint64_t mend_part(uint64_t at, std::string* bytes) {
  auto head = load<ChunkHead>(*bytes, at);
  const uint64_t begin = at + sizeof head;
  if (head.payload_bytes > bytes->size() - begin) return 0;
  head.payload_hash = flux::hash_bytes(bytes->data() + begin, head.payload_bytes);
  head.head_hash = head.computed_hash();
  store(head, at, bytes);
  return head.payload_hash;
}

void mend_index(std::string* bytes) {
  const auto tail = load<Tail>(*bytes, bytes->size() - sizeof(Tail));
  const uint64_t size = bytes->size();
  if (tail.index_offset > size || size - tail.index_offset < sizeof(ChunkHead) + sizeof(Tail))
    return;
  const uint64_t end = size - sizeof(Tail);
  for (uint64_t at = tail.index_offset + sizeof(ChunkHead); at + sizeof(IndexEntry) <= end;
       at += sizeof(IndexEntry)) {
    auto entry = load<IndexEntry>(*bytes, at);
    if (entry.offset > size || size - entry.offset < sizeof(ChunkHead)) continue;
    entry.payload_hash = mend_part(entry.offset, bytes);
    store(entry, at, bytes);
  }
  mend_part(tail.index_offset, bytes);
}

void mend(std::string* bytes) {
  if (bytes->size() < sizeof(Head) + sizeof(ChunkHead) + sizeof(Tail)) return;
  auto head = load<Head>(*bytes, 0);
  if (head.schema_bytes <= bytes->size() - sizeof head) {
    head.schema_hash = flux::hash_bytes(bytes->data() + sizeof head, head.schema_bytes);
    store(head, 0, bytes);
  }
  mend_index(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  mend(&bytes);
  const flux::MemoryFile memory(bytes.data(), bytes.size());
  std::string note;
  auto options = flux::guess_data_options(memory.path(), &note);
  if (!options.is_ok() || options.value().format != "blocks") return 0;
  options.value().batch_size = 3;
  flux::read_all(memory.path(), options.value(), [](const flux::Batch&) {});
  return 0;
}
