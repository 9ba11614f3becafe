// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The Embedding Access Logger: one memory word per set, with all its ways.
//
//   entry  | valid | counter (2) | tag |        word  | entry 15 | ... | entry 0 |
//
// FRAGMENT only reads it, one lookup in a cycle. The operations that change it take one lookup in
// four cycles: a set is read, changed and written back before the next lookup, which may be of the
// same set, reads.
#pragma once

#include "hotline/common.hpp"
#include "hotline/output.hpp"

namespace hotline {

template <int Sets, int Ways>
struct Eal {
  static const int set_bits = Log2<Sets>::value;
  static const int tag_bits = 32 - set_bits;
  static const int entry_bits = tag_bits + 3;
  typedef ap_uint<Ways * entry_bits> word;
  typedef ap_uint<entry_bits> entry;

  static uint32_t set_of(uint32_t permuted) { return permuted & uint32_t(Sets - 1); }
  static ap_uint<tag_bits> tag_of(uint32_t permuted) {
    return set_bits == 32 ? 0 : uint32_t(uint64_t(permuted) >> set_bits);
  }
  static entry make(uint32_t permuted, ap_uint<2> counter) {
    entry made = 0;
    made.range(tag_bits - 1, 0) = tag_of(permuted);
    made.range(tag_bits + 1, tag_bits) = counter;
    made[entry_bits - 1] = 1;
    return made;
  }
  static entry get(const word& set, int way) {
    return set.range((way + 1) * entry_bits - 1, way * entry_bits);
  }
  static void put(word& set, int way, entry value) {
    set.range((way + 1) * entry_bits - 1, way * entry_bits) = value;
  }
  static bool valid(const entry& of) { return of[entry_bits - 1] != 0; }
  static ap_uint<2> counter(const entry& of) { return of.range(tag_bits + 1, tag_bits); }
  static ap_uint<tag_bits> tag(const entry& of) { return of.range(tag_bits - 1, 0); }

  /// The way that holds a row, or -1. All ways at once.
  static int find(const word& set, uint32_t permuted) {
#pragma HLS INLINE
    int found = -1;
    for (int way = Ways - 1; way >= 0; --way) {
#pragma HLS UNROLL
      const entry one = get(set, way);
      if (valid(one) && tag(one) == tag_of(permuted)) found = way;
    }
    return found;
  }

  /// The lowest way without a row, or -1.
  static int find_free(const word& set) {
#pragma HLS INLINE
    int found = -1;
    for (int way = Ways - 1; way >= 0; --way) {
#pragma HLS UNROLL
      if (!valid(get(set, way))) found = way;
    }
    return found;
  }
};

/// A lookup with what the EAL says of it.
struct Lookup {
  uint32_t row, permuted, slot;
  ap_uint<2> kind;
};
enum Kind { kPinned = 0, kHot = 1, kMiss = 2, kBad = 3 };

/// Looks up `count` row ids. II = 1: the memory is only read.
template <int Sets, int Ways, int DepthIn, int DepthOut>
void look_up(uint32_t count, uint32_t total_rows, uint32_t pinned_rows,
             const typename Eal<Sets, Ways>::word (&eal)[Sets], hls::stream<uint32_t, DepthIn>& in,
             hls::stream<Lookup, DepthOut>& out) {
  typedef Eal<Sets, Ways> E;
  for (uint32_t n = 0; n < count; ++n) {
#pragma HLS PIPELINE II = 1
    Lookup lookup;
    lookup.row = in.read();
    lookup.permuted = permute(lookup.row);
    const uint32_t set = E::set_of(lookup.permuted);
    const int way = E::find(eal[set], lookup.permuted);
    const bool pinned = lookup.row < pinned_rows;
    lookup.slot = pinned ? lookup.row : pinned_rows + set * Ways + uint32_t(way < 0 ? 0 : way);
    lookup.kind = lookup.row >= total_rows ? kBad : pinned ? kPinned : way >= 0 ? kHot : kMiss;
    out.write(lookup);
  }
}

/// SRRIP on a full set: ages it and returns the way that goes.
template <int Sets, int Ways>
int replace(typename Eal<Sets, Ways>::word& set) {
#pragma HLS INLINE
  typedef Eal<Sets, Ways> E;
  ap_uint<2> greatest = 0;
  for (int way = 0; way < Ways; ++way) {
#pragma HLS UNROLL
    const ap_uint<2> counter = E::counter(E::get(set, way));
    if (counter > greatest) greatest = counter;
  }
  const ap_uint<2> age = 3 - greatest;
  int victim = 0;
  for (int way = Ways - 1; way >= 0; --way) {
#pragma HLS UNROLL
    typename E::entry entry = E::get(set, way);
    const ap_uint<2> counter = E::counter(entry) + age;
    entry.range(E::tag_bits + 1, E::tag_bits) = counter;
    E::put(set, way, entry);
    if (counter == 3) victim = way;
  }
  return victim;
}

/// The frequency policy on a full set: returns the way that goes, or -1 and ages one.
template <int Sets, int Ways>
int challenge(typename Eal<Sets, Ways>::word& set, uint32_t permuted) {
#pragma HLS INLINE
  typedef Eal<Sets, Ways> E;
  const int start = int(uint32_t(E::tag_of(permuted)) & uint32_t(Ways - 1));
  int victim = start;
  ap_uint<2> greatest = E::counter(E::get(set, start));
  for (int step = 1; step < Ways; ++step) {
#pragma HLS UNROLL
    const int way = (start + step) & (Ways - 1);
    const ap_uint<2> counter = E::counter(E::get(set, way));
    if (counter > greatest) {
      greatest = counter;
      victim = way;
    }
  }
  if (greatest == 3) return victim;
  typename E::entry entry = E::get(set, victim);
  entry.range(E::tag_bits + 1, E::tag_bits) = ap_uint<2>(greatest + 1);
  E::put(set, victim, entry);
  return -1;
}

/// LEARN, or EVICT, of `count` row ids in order.
template <int Sets, int Ways, int Depth>
void change(uint32_t operation, uint32_t flags, uint32_t count, uint32_t total_rows,
            uint32_t pinned_rows, typename Eal<Sets, Ways>::word (&eal)[Sets],
            hls::stream<uint32_t, Depth>& in, Result& result) {
  typedef Eal<Sets, Ways> E;
  Result found = no_result();
  for (uint32_t n = 0; n < count; ++n) {
#pragma HLS PIPELINE II = 4
    const uint32_t row = in.read();
    if (found.status != kOk) continue;  // the list is read to its end
    if (row >= total_rows) {
      found.status = kBadIndex;
      found.reason = kRowId;
      found.error_lookup = n;
      found.error_value = row;
      continue;
    }
    ++found.lookups;
    if (row < pinned_rows) {
      ++found.pinned;
      continue;
    }
    const uint32_t permuted = permute(row);
    const uint32_t index = E::set_of(permuted);
    typename E::word set = eal[index];
    const int way = E::find(set, permuted);
    if (way >= 0) {
      ++found.eal;
      if (operation == kEvict) {
        E::put(set, way, 0);
      } else {
        const ap_uint<2> counter = E::counter(E::get(set, way));
        const bool counts = (flags & kFrequencyPolicy) != 0;
        const ap_uint<2> next = !counts || counter == 0 ? ap_uint<2>(0) : ap_uint<2>(counter - 1);
        E::put(set, way, E::make(permuted, next));
      }
    } else {
      ++found.cold;
      if (operation == kLearn) {
        const bool counts = (flags & kFrequencyPolicy) != 0;
        int place = E::find_free(set);
        if (place < 0) {
          place = counts ? challenge<Sets, Ways>(set, permuted) : replace<Sets, Ways>(set);
        }
        if (place >= 0) E::put(set, place, E::make(permuted, counts ? 3 : 2));
      }
    }
    eal[index] = set;
  }
  result = found;
}

/// LOAD of `count` entries, or row ids; those without a way go back in the same form.
template <int Sets, int Ways, int DepthIn, int DepthOut>
void load(uint32_t flags, uint32_t count, uint32_t total_rows, uint32_t pinned_rows,
          typename Eal<Sets, Ways>::word (&eal)[Sets], hls::stream<uint32_t, DepthIn>& in,
          hls::stream<Token, DepthOut>& out, Result& result) {
  typedef Eal<Sets, Ways> E;
  const bool plain = (flags & kPlainList) != 0;
  Result found = no_result();
  for (uint32_t n = 0; n < count; ++n) {
#pragma HLS PIPELINE II = 4
    const uint32_t row = in.read();
    const uint32_t about = plain ? 2u << 30 : in.read();
    if (found.status != kOk) continue;
    if (row >= total_rows) {
      found.status = kBadIndex;
      found.reason = kRowId;
      found.error_lookup = n;
      found.error_value = row;
      continue;
    }
    ++found.lookups;
    if (row < pinned_rows) {
      ++found.pinned;
      continue;
    }
    const uint32_t permuted = permute(row);
    const uint32_t index = E::set_of(permuted);
    typename E::word set = eal[index];
    if (E::find(set, permuted) >= 0) {
      ++found.eal;
      continue;
    }
    ++found.cold;
    const int place = E::find_free(set);
    if (place >= 0) {
      E::put(set, place, E::make(permuted, about >> 30));
      eal[index] = set;
    } else {
      ++found.cold_rows;
      const Token first = {row, kIndices};
      out.write(first);
      if (!plain) {
        const Token second = {about, kIndices};
        out.write(second);
      }
    }
  }
  const Token end = {0, kEnd};
  out.write(end);
  result = found;
}

/// DUMP: valid entries in the order of their slots.
template <int Sets, int Ways, int Depth>
void dump(uint32_t pinned_rows, const typename Eal<Sets, Ways>::word (&eal)[Sets],
          hls::stream<Token, Depth>& out, Result& result) {
  typedef Eal<Sets, Ways> E;
  Result found = no_result();
  for (uint32_t set = 0; set < uint32_t(Sets); ++set) {
    const typename E::word word = eal[set];
    for (int way = 0; way < Ways; ++way) {
#pragma HLS PIPELINE II = 2
      const typename E::entry entry = E::get(word, way);
      if (E::valid(entry)) {
        const uint32_t permuted = uint32_t(uint64_t(E::tag(entry)) << E::set_bits) | set;
        const Token row = {unpermute(permuted), kIndices};
        const uint32_t slot = pinned_rows + set * Ways + uint32_t(way);
        const Token about = {slot | uint32_t(E::counter(entry)) << 30, kIndices};
        out.write(row);
        out.write(about);
        ++found.lookups;
      }
    }
  }
  const Token end = {0, kEnd};
  out.write(end);
  result = found;
}

template <int Sets, int Ways>
void clear(typename Eal<Sets, Ways>::word (&eal)[Sets]) {
  for (int set = 0; set < Sets; ++set) {
#pragma HLS PIPELINE II = 1
    eal[set] = 0;
  }
}

}  // namespace hotline
