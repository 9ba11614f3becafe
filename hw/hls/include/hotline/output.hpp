// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Outputs of the fragmenter: 32-bit words for five lists, in any order, to bursts of bus words.
//
//   tokens -> pack -> words -> write_back -> memory (whole words), tail (the last words of a list)
#pragma once

#include "hotline/common.hpp"

namespace hotline {

constexpr int kLists = 5;
enum List { kIndices = 0, kPopular = 1, kNonpopular = 2, kBitmap = 3, kCold = 4, kEnd = 5 };

/// A word for a list; kEnd: nothing follows.
struct Token {
  uint32_t value;
  ap_uint<3> list;
};

/// A bus word for a list, of which the first `count` lanes hold something.
template <int BusBits>
struct OutputWord {
  ap_uint<BusBits> data;
  ap_uint<3> list;
  ap_uint<5> count;
};

/// Addresses of the lists.
struct Lists {
  uint64_t address[kLists];
};

/// Collects the words of each list. II = 1: a token touches the registers of one list, and at most
/// one bus word leaves with it.
template <int BusBits, int DepthIn, int DepthOut>
void pack(hls::stream<Token, DepthIn>& in, hls::stream<OutputWord<BusBits>, DepthOut>& out) {
  ap_uint<BusBits> partial[kLists];
  ap_uint<5> fill[kLists];
#pragma HLS ARRAY_PARTITION variable = partial complete
#pragma HLS ARRAY_PARTITION variable = fill complete
  for (int list = 0; list < kLists; ++list) {
#pragma HLS UNROLL
    partial[list] = 0;
    fill[list] = 0;
  }
  bool end = false;
  while (!end) {
#pragma HLS PIPELINE II = 1
    const Token token = in.read();
    if (token.list == kEnd) {
      end = true;
    } else {
      const int list = token.list;
      const int lane = fill[list];
      partial[list].range(32 * lane + 31, 32 * lane) = token.value;
      if (lane == Bus<BusBits>::lanes - 1) {
        const OutputWord<BusBits> word = {partial[list], token.list, Bus<BusBits>::lanes};
        out.write(word);
        fill[list] = 0;
      } else {
        fill[list] = lane + 1;
      }
    }
  }
  for (int list = 0; list < kLists; ++list) {
#pragma HLS PIPELINE II = 1
    if (fill[list] != 0) {
      const OutputWord<BusBits> word = {partial[list], ap_uint<3>(list), fill[list]};
      out.write(word);
    }
  }
  const OutputWord<BusBits> last = {0, kEnd, 0};
  out.write(last);
}

/// Writes `count` words as one burst.
template <int BusBits>
void write_burst(ap_uint<BusBits>* memory, uint64_t index, const ap_uint<BusBits>* words, int count) {
#pragma HLS INLINE off
  for (int n = 0; n < count; ++n) {
#pragma HLS PIPELINE II = 1
    memory[index + uint64_t(n)] = words[n];
  }
}

/// Writes the lists: whole words in bursts of kBurst, the last words of a list one by one.
template <int BusBits, int Depth>
void write_back(ap_uint<BusBits>* memory, uint32_t* tail, const Lists& lists,
                hls::stream<OutputWord<BusBits>, Depth>& in) {
  ap_uint<BusBits> held[kLists][kBurst];
  int count[kLists];
  uint64_t next[kLists];  // index of the first held word
#pragma HLS ARRAY_PARTITION variable = count complete
#pragma HLS ARRAY_PARTITION variable = next complete
  for (int list = 0; list < kLists; ++list) {
#pragma HLS UNROLL
    count[list] = 0;
    next[list] = lists.address[list] / Bus<BusBits>::bytes;
  }
  bool end = false;
  while (!end) {
    OutputWord<BusBits> word = in.read();
    if (word.list == kEnd) {
      end = true;
    } else if (word.count == Bus<BusBits>::lanes) {
      const int list = word.list;
      held[list][count[list]] = word.data;
      if (count[list] == kBurst - 1) {
        write_burst(memory, next[list], held[list], kBurst);
        next[list] += kBurst;
        count[list] = 0;
      } else {
        ++count[list];
      }
    } else {  // nothing of this list follows
      const int list = word.list;
      const uint64_t at = (next[list] + uint64_t(count[list])) * Bus<BusBits>::lanes;
      for (int n = 0; n < word.count; ++n) {
#pragma HLS PIPELINE II = 1
        tail[at + uint64_t(n)] = uint32_t(word.data.range(31, 0));
        word.data >>= 32;
      }
    }
  }
  for (int list = 0; list < kLists; ++list) {
    write_burst(memory, next[list], held[list], count[list]);
  }
}

}  // namespace hotline
