// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// What a good C++ programmer writes in an afternoon for the fragmentation job: a bitmap of the hot
// rows with ranks, a hash table for the distinct cold rows, a prefetched gather. Compiled for the
// machine at hand by `hotline bench host`, which compares our own code with it. It has no bounds
// check, and the ids arrive as one [samples, features] array.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

extern "C" {

struct PeerTable {
  std::vector<uint32_t> job, row, position;
  uint32_t number = 0;
  uint64_t mask = 0;
};

void* peer_new(int64_t rows) {
  auto* table = new PeerTable;
  uint64_t size = 64;
  while (size < static_cast<uint64_t>(rows) * 2) size *= 2;
  table->job.assign(size, 0);
  table->row.resize(size);
  table->position.resize(size);
  table->mask = size - 1;
  return table;
}

void peer_free(void* table) { delete static_cast<PeerTable*>(table); }

/// counts: popular samples, others, distinct cold rows.
void peer_fragment(void* opaque, const int64_t* ids, int64_t samples, int64_t features,
                   const int64_t* base, const uint64_t* bits, const uint32_t* rank, uint32_t hot_rows,
                   uint32_t* popular, uint32_t* others, uint32_t* cold, uint32_t* indices,
                   int64_t* counts) {
  PeerTable& table = *static_cast<PeerTable*>(opaque);
  if (++table.number == 0) {
    std::fill(table.job.begin(), table.job.end(), 0);
    table.number = 1;
  }
  constexpr int64_t kAhead = 24;
  const int64_t lookups = samples * features;
  int64_t populars = 0, rest = 0, distinct = 0;
  int64_t ahead_feature = kAhead % features;
  for (int64_t s = 0; s < samples; ++s) {
    bool any = false;
    for (int64_t f = 0; f < features; ++f) {
      const int64_t at = s * features + f;
      if (at + kAhead < lookups) {
        const int64_t later = ids[at + kAhead] + base[ahead_feature];
        __builtin_prefetch(bits + (later >> 6));
        __builtin_prefetch(rank + (later >> 6));
        if (++ahead_feature == features) ahead_feature = 0;
      }
      const int64_t row = ids[at] + base[f];
      const uint64_t word = bits[row >> 6], bit = uint64_t{1} << (row & 63);
      if ((word & bit) != 0) {
        indices[at] =
            rank[row >> 6] + static_cast<uint32_t>(__builtin_popcountll(word & (bit - 1)));
        continue;
      }
      any = true;
      uint64_t place = (static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15ull >> 20) & table.mask;
      while (table.job[place] == table.number && table.row[place] != static_cast<uint32_t>(row)) {
        place = (place + 1) & table.mask;
      }
      if (table.job[place] != table.number) {
        table.job[place] = table.number;
        table.row[place] = static_cast<uint32_t>(row);
        table.position[place] = static_cast<uint32_t>(distinct);
        cold[distinct++] = static_cast<uint32_t>(row);
      }
      indices[at] = hot_rows + table.position[place];
    }
    if (any) {
      others[rest++] = static_cast<uint32_t>(s);
    } else {
      popular[populars++] = static_cast<uint32_t>(s);
    }
  }
  counts[0] = populars;
  counts[1] = rest;
  counts[2] = distinct;
}

/// The machine's own limit: reads `count` random lines of 64 bytes, copies them out in order.
void peer_random_lines(const uint32_t* rows, int64_t count, const uint8_t* lines, uint8_t* out) {
  constexpr int64_t kAhead = 32;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(lines + int64_t{rows[i + kAhead]} * 64);
    std::memcpy(out + i * 64, lines + int64_t{rows[i]} * 64, 64);
  }
}

/// The same in the other direction.
void peer_random_stores(const uint32_t* rows, int64_t count, uint8_t* lines, const uint8_t* in) {
  constexpr int64_t kAhead = 32;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(lines + int64_t{rows[i + kAhead]} * 64, 1);
    std::memcpy(lines + int64_t{rows[i]} * 64, in + i * 64, 64);
  }
}

}  // extern "C"
