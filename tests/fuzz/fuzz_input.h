// How the bytes of a fuzzer become a message: one byte that chooses, two bytes (little-endian) with
// the length of the control part, the control part, and the rest as payload, 64-byte aligned.
// Pure; nothing fails: missing bytes are zeros or empty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "flux/base/buffer.h"

namespace flux {

struct FuzzInput {
  uint8_t choice = 0;
  std::string control;
  Buffer<std::byte> payload;

  FuzzInput(const uint8_t* data, size_t size) {
    if (size > 0) choice = data[0];
    size_t at = std::min<size_t>(size, 3);
    const size_t wanted = size >= 3 ? data[1] + 256U * data[2] : 0;
    control.assign(reinterpret_cast<const char*>(data) + at, std::min(wanted, size - at));
    at += control.size();
    payload.resize_discard(size - at);
    if (size > at) std::memcpy(payload.data(), data + at, size - at);
  }
};

}  // namespace flux
