// Sums along a row, in a fixed order that compilers vectorise (strict floating point forbids it for
// the plain loop), and the two updates that operators write most. For float and double.
// Pure functions over caller's memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "flux/nn/vector_math.h"

namespace flux {

constexpr size_t kLanes = 16;

template <typename T>
T fold_lanes(T* lanes) {
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

// Rows shorter than the lanes: four sums side by side cost less than folding sixteen.
template <typename T, typename Term>
T short_sum(size_t n, const Term& term) {
  T a = 0, b = 0, c = 0, d = 0;
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    a += term(i);
    b += term(i + 1);
    c += term(i + 2);
    d += term(i + 3);
  }
  for (; i < n; ++i) a += term(i);
  return (a + b) + (c + d);
}

template <typename T>
T sum_of(const T* x, size_t n) {
  if (n < kLanes) return short_sum<T>(n, [x](size_t i) { return x[i]; });
  T lanes[kLanes] = {};
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += x[i + k];
  for (size_t i = whole; i < n; ++i) lanes[i - whole] += x[i];
  return fold_lanes(lanes);
}

template <typename T>
T dot_of(const T* a, const T* b, size_t n) {
  if (n < kLanes) return short_sum<T>(n, [a, b](size_t i) { return a[i] * b[i]; });
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

// The largest of n numbers; -infinity of none.
template <typename T>
T max_of(const T* x, size_t n) {
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, static_cast<T>(-HUGE_VAL));
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) lanes[k] = lanes[k] < x[i + k] ? x[i + k] : lanes[k];
  T top = *std::max_element(lanes, lanes + kLanes);
  for (size_t i = whole; i < n; ++i) top = std::max(top, x[i]);
  return top;
}

// to[c][r] = x[r][c] of x [rows][columns].
template <typename T>
void turn(const T* x, size_t rows, size_t columns, T* to) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) to[c * rows + r] = x[r * columns + c];
}

// Sums stay in registers, so the number of columns is fixed.
template <size_t kColumns, typename T>
void row_times_columns(const T* a, size_t n, const T* b, size_t stride, T* y) {
  T sums[kColumns] = {};
  for (size_t k = 0; k < n; ++k)
    for (size_t j = 0; j < kColumns; ++j) sums[j] += a[k] * b[k * stride + j];
  for (size_t j = 0; j < kColumns; ++j) y[j] = sums[j];
}

// y[j] = sum of a[k] * b[k][j]: a row of numbers times the matrix b, [n][columns], whose rows lie
// `stride` apart.
template <typename T>
void row_times_matrix(const T* a, size_t n, const T* b, size_t stride, size_t columns, T* y) {
  size_t j = 0;
  for (; j + 16 <= columns; j += 16) row_times_columns<16>(a, n, b + j, stride, y + j);
  if (j + 8 <= columns) {
    row_times_columns<8>(a, n, b + j, stride, y + j);
    j += 8;
  }
  if (j + 4 <= columns) {
    row_times_columns<4>(a, n, b + j, stride, y + j);
    j += 4;
  }
  for (; j < columns; ++j) row_times_columns<1>(a, n, b + j, stride, y + j);
}

// x becomes softmax(x); entries whose mask (if there is one) is 0 become 0, and if all are, so does
// the whole row.
template <typename T>
void softmax_in_place(T* x, const T* mask, size_t n) {
  if (mask != nullptr)
    for (size_t i = 0; i < n; ++i) x[i] = mask[i] != 0 ? x[i] : static_cast<T>(-HUGE_VAL);
  const T top = max_of(x, n);
  if (mask != nullptr && top == static_cast<T>(-HUGE_VAL)) {
    std::fill_n(x, n, T(0));
    return;
  }
  for (size_t i = 0; i < n; ++i) x[i] = exp_of(x[i] - top);
  if (mask != nullptr)
    for (size_t i = 0; i < n; ++i) x[i] = mask[i] != 0 ? x[i] : T(0);
  const T share = T(1) / sum_of(x, n);
  for (size_t i = 0; i < n; ++i) x[i] *= share;
}

// log(sum of exp(x)); `scratch` takes n numbers.
template <typename T>
T log_sum_exp(const T* x, size_t n, T* scratch) {
  const T top = max_of(x, n);
  for (size_t i = 0; i < n; ++i) scratch[i] = exp_of(x[i] - top);
  return top + std::log(sum_of(scratch, n));
}

// The gradient of softmax: dx += y (dy - sum of y dy).
template <typename T>
void add_softmax_gradient(const T* y, const T* dy, size_t n, T* dx) {
  const T mean = dot_of(y, dy, n);
  for (size_t i = 0; i < n; ++i) dx[i] += y[i] * (dy[i] - mean);
}

}  // namespace flux
