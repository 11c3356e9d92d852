// Sums along a row, in a fixed order that compilers vectorise (strict floating point forbids it for
// the plain loop), and the two updates that operators write most. For float and double.
// Pure functions over caller's memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace flux {

constexpr size_t kLanes = 16;

template <typename T>
T fold_lanes(T* lanes) {
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

template <typename T>
T sum_of(const T* x, size_t n) {
  T lanes[kLanes] = {};
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += x[i + k];
  for (size_t i = whole; i < n; ++i) lanes[i - whole] += x[i];
  return fold_lanes(lanes);
}

template <typename T>
T dot_of(const T* a, const T* b, size_t n) {
  T lanes[kLanes] = {};
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
  for (size_t i = whole; i < n; ++i) lanes[i - whole] += a[i] * b[i];
  return fold_lanes(lanes);
}

// y += a * x
template <typename T>
void add_scaled(T a, const T* x, size_t n, T* y) {
  for (size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// x becomes softmax(x); entries whose mask (if there is one) is 0 become 0, and if all are, so does
// the whole row.
template <typename T>
void softmax_in_place(T* x, const T* mask, size_t n) {
  T top = -HUGE_VAL;
  for (size_t i = 0; i < n; ++i)
    if (mask == nullptr || mask[i] != 0) top = std::max(top, x[i]);
  T sum = 0;
  for (size_t i = 0; i < n; ++i) {
    x[i] = mask == nullptr || mask[i] != 0 ? std::exp(x[i] - top) : T(0);
    sum += x[i];
  }
  for (size_t i = 0; i < n; ++i) x[i] = sum > 0 ? x[i] / sum : T(0);
}

// The gradient of softmax: dx += y (dy - sum of y dy).
template <typename T>
void add_softmax_gradient(const T* y, const T* dy, size_t n, T* dx) {
  const T mean = dot_of(y, dy, n);
  for (size_t i = 0; i < n; ++i) dx[i] += y[i] * (dy[i] - mean);
}

}  // namespace flux
