// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// FRAGMENT as a dataflow:
//
//   read_list -> unpack_list -> look_up -> track --+
//                                                  +-> classify -> pack -> write_back
//   read_list -> unpack_list -> sample_lengths ----+
//
// Lookups and lengths flow to their end whatever happens; `classify` decides, in the order of the
// contract, where the job ends, and takes what is left without looking at it. So no process has to be
// stopped, and a list that ends early leaves nothing in a stream.
#pragma once

#include "hotline/common.hpp"
#include "hotline/eal.hpp"
#include "hotline/output.hpp"

namespace hotline {

/// Lookups of a sample, or, if `reason` is not kNone, what is wrong with its offsets.
struct SampleLength {
  uint32_t length;
  uint32_t reason, entry, value;
};

/// Gives one length for what comes before the first sample (entry 0), then one per sample. II = 1: an
/// entry is compared with the one before, a register.
template <int DepthIn, int DepthOut>
void sample_lengths(uint32_t samples, uint32_t bags, uint32_t per_sample, uint32_t lookups,
                    uint32_t lookups_max, hls::stream<uint32_t, DepthIn>& offsets,
                    hls::stream<SampleLength, DepthOut>& out) {
  const SampleLength good = {0, kNone, 0, 0};
  if (bags == 0) {
    out.write(good);
    for (uint32_t n = 0; n < samples; ++n) {
#pragma HLS PIPELINE II = 1
      const SampleLength one = {per_sample, kNone, 0, 0};
      out.write(one);
    }
    return;
  }
  const uint32_t last = samples * bags;  // at most 2**32 - 2, which the shell has checked
  uint32_t before = offsets.read();
  const bool first_is_bad = before != 0 || (last == 0 && before != lookups);
  const SampleLength zero = {0, first_is_bad ? kOffset : kNone, 0, before};
  out.write(zero);
  SampleLength one = good;
  uint32_t begin = before, bag = 0;
  for (uint32_t entry = 1; entry <= last; ++entry) {
#pragma HLS PIPELINE II = 1
    const uint32_t edge = offsets.read();
    const bool bad = edge < before || edge > lookups || (entry == last && edge != lookups);
    if (bad && one.reason == kNone) {
      one.reason = kOffset;
      one.entry = entry;
      one.value = edge;
    }
    before = edge;
    ++bag;
    if (bag == bags) {
      one.length = edge - begin;
      if (one.reason == kNone && one.length > lookups_max) {
        one.reason = kSampleTooLong;
        one.entry = begin;
        one.value = one.length;
      }
      out.write(one);
      one = good;
      begin = edge;
      bag = 0;
    }
  }
}

/// A place of the cold tracker; it holds something if its generation is that of the job.
template <int GenerationBits>
struct Place {
  uint32_t row, position;
  ap_uint<GenerationBits> generation;
};

/// A lookup with its encoded index.
struct Tracked {
  uint32_t row, index;
  ap_uint<3> kind;
};
enum TrackedKind { kFast = 0, kDirectory = 1, kKnown = 2, kNew = 3, kOverflow = 4, kOutside = 5 };

/// Gives positions to cold rows, in a hash table with twice as many places as there may be rows, so
/// that a free one is always found. One probe per iteration; II = 2, since the next probe depends on
/// what the memory answers. Rows take the upper bits of the permuted id, which do not pick their set.
template <int Rows, int GenerationBits, int DepthIn, int DepthOut>
void track(uint32_t lookups, uint32_t rows_max, uint32_t cold_base,
           ap_uint<GenerationBits> generation, Place<GenerationBits> (&table)[2 * Rows],
           hls::stream<Lookup, DepthIn>& in, hls::stream<Tracked, DepthOut>& out) {
  const int bits = Log2<2 * Rows>::value;
  uint32_t left = lookups, rows = 0, at = 0;
  bool probing = false;
  Lookup lookup = {0, 0, 0, 0};
  while (left != 0) {
#pragma HLS PIPELINE II = 2
    if (!probing) {
      lookup = in.read();
      at = lookup.permuted >> (32 - bits);
    }
    const Place<GenerationBits> place = table[at];
    const bool taken = place.generation == generation;
    Tracked tracked = {lookup.row, lookup.slot, kFast};
    probing = false;
    if (lookup.kind == kBad) {
      tracked.kind = kOutside;
    } else if (lookup.kind == kHot) {
      tracked.kind = kDirectory;
    } else if (lookup.kind == kMiss) {
      if (taken && place.row != lookup.row) {
        at = (at + 1) & uint32_t(2 * Rows - 1);
        probing = true;
      } else if (taken) {
        tracked.kind = kKnown;
        tracked.index = cold_base + place.position;
      } else if (rows == rows_max) {
        tracked.kind = kOverflow;
      } else {
        tracked.kind = kNew;
        tracked.index = cold_base + rows;
        const Place<GenerationBits> taken_now = {lookup.row, rows, generation};
        table[at] = taken_now;
        ++rows;
      }
    }
    if (!probing) {
      out.write(tracked);
      --left;
    }
  }
}

/// Walks over the samples: one state per cycle, at most one read of a stream and one token in each, so
/// II = 1.
template <int DepthLengths, int DepthTracked, int DepthOut>
void classify(uint32_t samples, uint32_t lookups, hls::stream<SampleLength, DepthLengths>& lengths,
              hls::stream<Tracked, DepthTracked>& tracked, hls::stream<Token, DepthOut>& out,
              Result& result) {
  enum State { kLength, kLookup, kColdRow, kSample, kWord, kLastWord, kDone };
  Result found = no_result();
  State state = kLength;
  bool started = false, hot = true;
  uint32_t sample = 0, left = 0, taken_lookups = 0, taken_lengths = 0, word = 0, cold_row = 0;
  uint32_t sample_rows = 0, sample_pinned = 0, sample_eal = 0, sample_cold = 0;
  while (state != kDone) {
#pragma HLS PIPELINE II = 1
    switch (state) {
      case kLength: {
        const SampleLength one = lengths.read();
        ++taken_lengths;
        left = one.length;
        hot = true;
        sample_rows = sample_pinned = sample_eal = sample_cold = 0;
        if (one.reason != kNone) {
          found = bad_index(one.reason, sample, one.entry, one.value);
          state = kDone;
        } else if (!started) {
          started = true;
          state = samples == 0 ? kLastWord : kLength;
        } else {
          state = left == 0 ? kSample : kLookup;
        }
        break;
      }
      case kLookup: {
        const Tracked one = tracked.read();
        const uint32_t number = taken_lookups++;
        if (one.kind == kOutside) {
          found = bad_index(kRowId, sample, number, one.row);
          state = kDone;
        } else if (one.kind == kOverflow) {
          found.status = kColdOverflow;
          state = kLastWord;
        } else {
          const Token index = {one.index, kIndices};
          out.write(index);
          --left;
          if (one.kind == kFast) {
            ++sample_pinned;
          } else if (one.kind == kDirectory) {
            ++sample_eal;
          } else {
            ++sample_cold;
            hot = false;
          }
          cold_row = one.row;
          state = one.kind == kNew ? kColdRow : left == 0 ? kSample : kLookup;
        }
        break;
      }
      case kColdRow: {
        const Token row = {cold_row, kCold};
        out.write(row);
        ++sample_rows;
        state = left == 0 ? kSample : kLookup;
        break;
      }
      case kSample: {
        const Token number = {sample, hot ? kPopular : kNonpopular};
        out.write(number);
        word |= uint32_t(hot) << (sample & 31);
        found.popular += hot;
        found.cold_rows += sample_rows;
        found.pinned += sample_pinned;
        found.eal += sample_eal;
        found.cold += sample_cold;
        found.lookups += sample_pinned + sample_eal + sample_cold;
        ++sample;
        found.samples = sample;
        state = (sample & 31) == 0 ? kWord : sample == samples ? kLastWord : kLength;
        break;
      }
      case kWord: {
        const Token bits = {word, kBitmap};
        out.write(bits);
        word = 0;
        state = sample == samples ? kDone : kLength;
        break;
      }
      default: {
        if ((sample & 31) != 0) {
          const Token bits = {word, kBitmap};
          out.write(bits);
        }
        state = kDone;
        break;
      }
    }
  }
  const Token end = {0, kEnd};
  out.write(end);
  while (taken_lengths < samples + 1) {
#pragma HLS PIPELINE II = 1
    lengths.read();
    ++taken_lengths;
  }
  while (taken_lookups < lookups) {
#pragma HLS PIPELINE II = 1
    tracked.read();
    ++taken_lookups;
  }
  result = found;
}

}  // namespace hotline
