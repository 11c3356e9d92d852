// Keys that are made of text, and the texts that they were made of, for tools that show them.
//
// A key keeps nothing of its text. While a KeyNames lives, it notes the texts of all keys that its
// thread makes; without one nothing is noted, which is what training does.
// Threads: of the thread that made it, and destroyed there. Nothing fails.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "flux/base/hash.h"

namespace flux {

class KeyNames {
 public:
  KeyNames() : before_(current_) { current_ = this; }
  ~KeyNames() { current_ = before_; }
  KeyNames(const KeyNames&) = delete;
  KeyNames& operator=(const KeyNames&) = delete;

  // Null: no text of this key came by.
  const std::string* find(uint64_t key) const {
    const auto at = names_.find(key);
    return at == names_.end() ? nullptr : &at->second;
  }

 private:
  friend uint64_t text_key(std::string_view text);
  static inline constinit thread_local KeyNames* current_ = nullptr;
  KeyNames* const before_;
  std::unordered_map<uint64_t, std::string> names_;
};

// The key of a text, before its slot is mixed in.
inline uint64_t text_key(std::string_view text) {
  const uint64_t key = hash_bytes(text);
  if (KeyNames* const names = KeyNames::current_; names != nullptr) [[unlikely]]
    names->names_.try_emplace(key, text);
  return key;
}

}  // namespace flux
