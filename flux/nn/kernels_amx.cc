// The bf16 kernels of gemm_kernels.h on the tile registers of AMX: 16 x 16 sums of 32 products each
// per instruction. Includes nothing that defines shared inline functions.
//
// A block of C is 32 x 32: four tiles of sums, two of A, two of B. Panels of B are filled up with
// zeros to whole tiles; so is the end of A's rows, in a copy, as what lies behind them is not ours.
// Packed A lies in tiles: [rows / 16][k / 16][16 rows][16 units].
#include <immintrin.h>

#include "flux/nn/gemm_kernels.h"

namespace flux {
namespace {

#include "flux/nn/bf16_units.inc"

constexpr uint32_t kDepth = 16;  // units of k in a tile
constexpr uint32_t kVectors = 2;
#include "flux/nn/gemm_pack.inc"

constexpr uint32_t kTile = 16;                 // rows of a tile
constexpr uint32_t kBlock = 2 * kTile;         // rows and columns of a block of C
constexpr size_t kTileUnits = kTile * kDepth;  // of packed A

// Tiles by number: sums 0 and 1 (upper rows), 2 and 3 (lower), A 4 and 5, B 6 and 7.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};

// `lower` may be 0: those tiles are not used then.
void shape_tiles(uint32_t upper, uint32_t lower) {
  TileShapes shapes;
  const uint32_t rows[8] = {upper, upper, lower, lower, upper, lower, kDepth, kDepth};
  for (uint32_t i = 0; i < 8; ++i) {
    shapes.rows[i] = static_cast<uint8_t>(rows[i]);
    shapes.bytes[i] = rows[i] == 0 ? 0 : 64;
  }
  _tile_loadconfig(&shapes);
}

// Where the tiles of A for one block of C lie.
struct Left {
  const Unit *upper = nullptr, *lower = nullptr;
  size_t stride = 0;           // bytes from row to row
  size_t step = 0;             // units from tile to tile along k
  const Unit* ends = nullptr;  // the last tiles, 32 rows of kDepth units; null: as the others
};

// One step of k: two or four products.
template <bool kLower, bool kTwo>
inline void multiply(const Unit* upper, const Unit* lower, size_t a_stride, const Unit* b) {
  constexpr size_t kStride = (kTwo ? 2 : 1) * kLanes * sizeof(Unit);
  _tile_loadd(6, b, kStride);
  _tile_loadd(4, upper, a_stride);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (kTwo) {
    _tile_loadd(7, b + kLanes, kStride);
    _tile_dpbf16ps(1, 4, 7);
  }
  if constexpr (kLower) {
    _tile_loadd(5, lower, a_stride);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kTwo) _tile_dpbf16ps(3, 5, 7);
  }
}

template <bool kLower, bool kTwo>
void block(const Gemm& g, const Left& a, const Unit* b, uint32_t row, uint32_t rows,
           uint32_t column) {
  constexpr size_t kPanel = (kTwo ? 2 : 1) * kLanes;
  _tile_zero(0);
  if constexpr (kTwo) _tile_zero(1);
  if constexpr (kLower) _tile_zero(2);
  if constexpr (kLower && kTwo) _tile_zero(3);
  const uint32_t steps = round_up(g.k, kDepth) / kDepth;
  const uint32_t plain = a.ends == nullptr ? steps : steps - 1;
  for (uint32_t k = 0; k < plain; ++k, b += kDepth * kPanel)
    multiply<kLower, kTwo>(a.upper + k * a.step, a.lower + k * a.step, a.stride, b);
  if (plain < steps) multiply<kLower, kTwo>(a.ends, a.ends + kTileUnits, kDepth * sizeof(Unit), b);

  alignas(64) float sums[kBlock][kBlock];
  constexpr size_t kStride = sizeof sums[0];
  _tile_stored(0, &sums[0][0], kStride);
  if constexpr (kTwo) _tile_stored(1, &sums[0][kLanes], kStride);
  if constexpr (kLower) _tile_stored(2, &sums[kTile][0], kStride);
  if constexpr (kLower && kTwo) _tile_stored(3, &sums[kTile][kLanes], kStride);
  for (uint32_t v = 0; v < kPanel; v += kLanes) {
    const __mmask16 lanes = first_lanes(g.n - (column + v));
    for (uint32_t r = 0; r < rows; ++r)
      finish<true>(g, row + r, column + v, lanes, _mm512_load_ps(&sums[r][v]));
  }
}

using Block = void (*)(const Gemm&, const Left&, const Unit*, uint32_t, uint32_t, uint32_t);

Block block_of(bool lower, bool two) {
  if (lower) return two ? block<true, true> : block<true, false>;
  return two ? block<false, true> : block<false, false>;
}

// The last tiles of A's rows [row, row + rows), filled up with zeros.
void copy_ends(const Gemm& g, uint32_t row, uint32_t rows, Unit* to) {
  const uint32_t first = g.k / kDepth * kDepth;
  const auto* a = static_cast<const Unit*>(g.a) + row * g.a_stride + first;
  for (uint32_t r = 0; r < rows; ++r, a += g.a_stride)
    _mm512_store_ps(to + r * kDepth, _mm512_maskz_loadu_ps(first_lanes(g.k - first), a));
}

Left left_of(const Gemm& g, uint32_t row, uint32_t rows, Unit* ends) {
  const auto* a = static_cast<const Unit*>(g.a);
  if (g.a_packed) {
    const size_t down = static_cast<size_t>(round_up(g.k, kDepth)) * kTile;
    const Unit* upper = a + row / kTile * down;
    return {upper, upper + down, kDepth * sizeof(Unit), kTileUnits, nullptr};
  }
  const Unit* upper = a + row * g.a_stride;
  const bool whole = g.k % kDepth == 0;
  if (!whole) copy_ends(g, row, rows, ends);
  return {upper, upper + kTile * g.a_stride, g.a_stride * sizeof(Unit), kDepth,
          whole ? nullptr : ends};
}

void gemm(const Gemm& g) {
  const uint32_t total = round_up(g.n, kLanes) / kLanes;
  const size_t depth = round_up(g.k, kDepth);
  alignas(64) Unit ends[kBlock * kDepth];
  uint32_t shaped = 0;  // rows that the tiles have now
  for (uint32_t row = 0; row < g.m; row += kBlock) {
    const uint32_t rows = smaller(kBlock, g.m - row);
    const uint32_t held = g.a_packed ? round_up(rows, kTile) : rows;
    if (held != shaped) shape_tiles(smaller(held, kTile), held > kTile ? held - kTile : 0);
    shaped = held;
    const Left a = left_of(g, row, rows, ends);
    const auto* b = static_cast<const Unit*>(g.b);
    uint32_t left = g.panels;
    for (uint32_t done = 0; done < total && left > 0; --left) {
      const uint32_t vectors = panel_vectors(total - done);
      block_of(held > kTile, vectors == 2)(g, a, b, row, rows, done * kLanes);
      b += vectors * kLanes * depth;
      done += vectors;
    }
  }
  _tile_release();
}

// Tile by tile: 32 rows of 16 columns, turned.
void pack_a(const void* from, size_t stride, uint32_t begin, uint32_t end, uint32_t rows,
            uint32_t m, void* to) {
  const auto* source = static_cast<const Element*>(from);
  auto* tiles = static_cast<Unit*>(to);
  const size_t down = static_cast<size_t>(depth_of(rows)) * kTile;
  for (; begin < end; begin += kDepth * kPair)
    for (uint32_t column = 0; column < m; column += kLanes) {
      const __mmask16 lanes = first_lanes(m - column);
      __m512 x[kLanes];
      for (uint32_t i = 0; i < kLanes; ++i) {
        const uint32_t r = begin + i * kPair;
        const Element* row = source + r * stride + column;
        __builtin_prefetch(row + kDepth * kPair * stride, 0, 3);
        __builtin_prefetch(row + (kDepth * kPair + 1) * stride, 0, 3);
        x[i] = r < rows ? load_pair_rows(row, stride, r + 1 < rows, lanes) : _mm512_setzero_ps();
      }
      transpose(x);
      Unit* tile = tiles + column / kLanes * down + begin / kPair * kTile;
      for (uint32_t i = 0; i < kLanes; ++i) _mm512_store_ps(tile + i * kDepth, x[i]);
    }
}

}  // namespace

const GemmKernels& gemm_kernels_amx() {
  static constexpr GemmKernels kKernels = {
      gemm, panel_columns, pack_b, pack_weight, weight_strips, strip_rows, pack_a, kDepth, kTile};
  return kKernels;
}

}  // namespace flux
