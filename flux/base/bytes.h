// ByteWriter / ByteReader: little-endian encoding of file and wire formats. The reader trusts
// nothing: reading past the end gives zeros and leaves ok() false, to be looked at once at the end.
// Values only; not thread-safe.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace flux {

static_assert(std::endian::native == std::endian::little, "flux formats are little-endian");

class ByteWriter {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes(&value, sizeof value);
  }
  void bytes(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  void text(std::string_view s) {
    put<uint32_t>(static_cast<uint32_t>(s.size()));
    bytes(s.data(), s.size());
  }
  size_t size() const { return out_.size(); }
  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view data) : data_(data) {}

  template <typename T>
  T get() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    if (const char* p = take(sizeof value)) std::memcpy(&value, p, sizeof value);
    return value;
  }
  std::string text(size_t size_max) {
    const auto size = get<uint32_t>();
    if (size > size_max) ok_ = false;
    const char* p = ok_ ? take(size) : nullptr;
    return p != nullptr ? std::string(p, size) : std::string();
  }
  // The next `size` bytes in place, or nullptr (and ok() false) if there are not so many.
  const char* take(size_t size) {
    if (!ok_ || size > data_.size() - at_) {
      ok_ = false;
      return nullptr;
    }
    const char* p = data_.data() + at_;
    at_ += size;
    return p;
  }
  bool ok() const { return ok_; }
  size_t offset() const { return at_; }
  size_t left() const { return data_.size() - at_; }

 private:
  std::string_view data_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace flux
