// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Coalescing: the gradients of all lookups of a step are summed by row, so that a row gets one
// update however often it occurs. A stable radix sort brings the lookups of a row together in
// their order; each sum then runs in that order, so the result does not depend on anything else.
// Compiled without contraction of a * b + c: the sums equal those of the plain loop to the bit. The
// update rounds once, as torch's does.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

// As in kernels.cpp; without the instruction the result is the same, by a library function.
#if defined(__x86_64__) && defined(__GLIBC__) && (!defined(__clang__) || __clang_major__ >= 14)
#define HOTLINE_FMA_CLONES __attribute__((target_clones("fma", "default")))
#else
#define HOTLINE_FMA_CLONES
#endif

namespace {

constexpr int kDigitBits = 11;
constexpr int kDigits = 3;  // 33 bits: every key below 2**32
constexpr int64_t kBuckets = 1 << kDigitBits;

/// Sorts key << 32 | position by key, stably. Returns which of the two buffers holds the result.
uint64_t* radix_sort(uint64_t* items, uint64_t* spare, int64_t count) {
  std::array<std::array<int64_t, kBuckets>, kDigits> counts{};
  for (int64_t i = 0; i < count; ++i) {
    for (int digit = 0; digit < kDigits; ++digit) {
      ++counts[digit][items[i] >> (32 + digit * kDigitBits) & (kBuckets - 1)];
    }
  }
  for (int digit = 0; digit < kDigits; ++digit) {
    const int shift = 32 + digit * kDigitBits;
    auto& places = counts[digit];
    if (count != 0 && places[items[0] >> shift & (kBuckets - 1)] == count) continue;
    int64_t place = 0;
    for (auto& bucket : places) place += std::exchange(bucket, place);
    for (int64_t i = 0; i < count; ++i) {
      spare[places[items[i] >> shift & (kBuckets - 1)]++] = items[i];
    }
    std::swap(items, spare);
  }
  return items;
}

}  // namespace

extern "C" {

/// The lookups of one backward pass.
struct HotlineRecord {
  const void* indices;   ///< [lookups] int64_t or int32_t: where each lookup read
  const int64_t* bags;   ///< [lookups]: its bag; null: lookup n is bag n
  const void* gradient;  ///< [bags, dim]: gradient of each bag's sum
  const void* weights;   ///< [lookups]: factor of each lookup, or null
  int64_t lookups;
  int64_t bag_count;
  int64_t row_stride;  ///< of gradient, in elements
  int32_t wide;        ///< indices are int64_t
  int32_t reserved;
};

/// Plans the sums: groups the lookups of all records by index.
///
/// `work` has room for 2 * n uint64_t, `order` for n, `unique` for n, `starts` for n + 1 entries,
/// n being the sum of the lookups (at most 2**32 - 1). Afterwards the lookups of unique[k] are
/// order[starts[k] ... starts[k + 1] - 1], ascending. Returns the number of distinct indices, or
/// -1 - (number of the first lookup whose index is not in 0 ... limit - 1), or that of the first
/// whose bag is not below its record's bag_count, minus 2**40.
int64_t hotline_coalesce_plan(const HotlineRecord* records, int32_t record_count, int64_t limit,
                              uint64_t* work, uint32_t* order, int64_t* unique, int64_t* starts) {
  int64_t count = 0;
  for (int32_t r = 0; r < record_count; ++r) {
    const HotlineRecord& record = records[r];
    for (int64_t i = 0; i < record.lookups; ++i) {
      const int64_t index = record.wide ? static_cast<const int64_t*>(record.indices)[i]
                                        : static_cast<const int32_t*>(record.indices)[i];
      if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(limit)) return -1 - count;
      const int64_t bag = record.bags != nullptr ? record.bags[i] : i;
      if (static_cast<uint64_t>(bag) >= static_cast<uint64_t>(record.bag_count)) {
        return -1 - count - (int64_t{1} << 40);
      }
      work[count] = static_cast<uint64_t>(index) << 32 | static_cast<uint64_t>(count);
      ++count;
    }
  }
  const uint64_t* sorted = radix_sort(work, work + count, count);
  int64_t distinct = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = static_cast<int64_t>(sorted[i] >> 32);
    order[i] = static_cast<uint32_t>(sorted[i]);
    if (distinct == 0 || unique[distinct - 1] != index) {
      unique[distinct] = index;
      starts[distinct++] = i;
    }
  }
  starts[distinct] = count;
  return distinct;
}

}  // extern "C"

namespace {

/// The gradient's row that a lookup adds; `lookup` counts from the record's first one.
template <typename T>
const T* gradient_row(const HotlineRecord* record, int64_t lookup) {
  const int64_t bag = record->bags != nullptr ? record->bags[lookup] : lookup;
  return static_cast<const T*>(record->gradient) + bag * record->row_stride;
}

// Rows are read in random order; asking for them early hides most of the memory's latency.
constexpr int64_t kAhead = 16;

template <typename T>
void prefetch(const T* row, int64_t dim) {
  for (int64_t d = 0; d < dim; d += 64 / sizeof(T)) __builtin_prefetch(row + d);
}

template <typename T>
void coalesce_sum(const HotlineRecord* records, int64_t distinct, int64_t dim,
                  const uint32_t* order, const int64_t* starts, T* sums) {
  const int64_t count = starts[distinct];
  for (int64_t k = 0; k < distinct; ++k) {
    T* sum = sums + k * dim;
    std::fill(sum, sum + dim, T{0});
    const HotlineRecord* record = records;
    int64_t first = 0;  // number of the record's first lookup; positions ascend
    for (int64_t i = starts[k]; i < starts[k + 1]; ++i) {
      if (i + kAhead < count) {
        const HotlineRecord* later = records;
        int64_t lookup_later = order[i + kAhead];
        while (lookup_later >= later->lookups) lookup_later -= (later++)->lookups;
        prefetch(gradient_row<T>(later, lookup_later), dim);
      }
      while (order[i] - first >= record->lookups) first += (record++)->lookups;
      const int64_t lookup = order[i] - first;
      const T* row = gradient_row<T>(record, lookup);
      if (record->weights != nullptr) {
        const T weight = static_cast<const T*>(record->weights)[lookup];
        for (int64_t d = 0; d < dim; ++d) sum[d] += row[d] * weight;
      } else {
        for (int64_t d = 0; d < dim; ++d) sum[d] += row[d];
      }
    }
  }
}

inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <typename T>
inline __attribute__((always_inline)) int64_t sgd(T* weights, int64_t rows, int64_t dim, const int64_t* indices, const T* gradients,
            int64_t count, T rate) {
  for (int64_t k = 0; k < count; ++k) {
    if (static_cast<uint64_t>(indices[k]) >= static_cast<uint64_t>(rows)) return k;
  }
  for (int64_t k = 0; k < count; ++k) {
    if (k + kAhead < count) prefetch(weights + indices[k + kAhead] * dim, dim);
    T* row = weights + indices[k] * dim;
    const T* gradient = gradients + k * dim;
    for (int64_t d = 0; d < dim; ++d) row[d] = multiply_add(-rate, gradient[d], row[d]);
  }
  return -1;
}

}  // namespace

extern "C" {

/// Sums of the planned lookups' gradients, [distinct, dim].
void hotline_coalesce_sum_f32(const HotlineRecord* records, int64_t distinct, int64_t dim,
                              const uint32_t* order, const int64_t* starts, float* sums) {
  coalesce_sum(records, distinct, dim, order, starts, sums);
}

void hotline_coalesce_sum_f64(const HotlineRecord* records, int64_t distinct, int64_t dim,
                              const uint32_t* order, const int64_t* starts, double* sums) {
  coalesce_sum(records, distinct, dim, order, starts, sums);
}

/// weights[indices[k]] -= rate * gradients[k] for distinct indices, rounded once. Returns -1, or the number of
/// the first index out of range; then nothing is changed.
HOTLINE_FMA_CLONES
int64_t hotline_sgd_f32(float* weights, int64_t rows, int64_t dim, const int64_t* indices,
                        const float* gradients, int64_t count, float rate) {
  return sgd(weights, rows, dim, indices, gradients, count, rate);
}

HOTLINE_FMA_CLONES
int64_t hotline_sgd_f64(double* weights, int64_t rows, int64_t dim, const int64_t* indices,
                        const double* gradients, int64_t count, double rate) {
  return sgd(weights, rows, dim, indices, gradients, count, rate);
}

}  // extern "C"
