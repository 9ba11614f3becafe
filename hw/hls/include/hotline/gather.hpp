// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// GATHER and SCATTER as dataflows:
//
//   read_list -> unpack_list -> check_rows -> fetch_records -> store_list       store to RECORDS
//   read_list -> unpack_list -> check_rows ---+
//                               read_records -+-> place_records                 RECORDS to the store
#pragma once

#include "hotline/common.hpp"

namespace hotline {

constexpr int kSegments = 64;

/// Where records lie.
struct Store {
  uint32_t segments, shift;
  uint64_t address[kSegments];  // of each segment; of row 0 if there is one
};

/// A row id within bounds; or the end of the list.
struct Row {
  uint32_t row;
  bool end;
};

/// A beat of a record; or the end of all.
template <int BusBits>
struct Beat {
  ap_uint<BusBits> data;
  bool end;
};

/// Reads the segment table: 64-bit addresses, low word first.
template <int BusBits>
void read_table(const ap_uint<BusBits>* memory, uint64_t address, Store& store) {
  ap_uint<BusBits> word = 0;
  const int each = BusBits / 64;
  for (uint32_t n = 0; n < store.segments; ++n) {
#pragma HLS PIPELINE II = 1
    const uint32_t lane = n % uint32_t(each);
    if (lane == 0) word = memory[address / Bus<BusBits>::bytes + n / uint32_t(each)];
    store.address[n] = uint64_t(word.range(63, 0));
    word >>= BusBits == 64 ? 0 : 64;
  }
}

/// Index of the first bus word of a record.
template <int BusBits>
uint64_t record_index(const Store& store, uint32_t row, uint32_t record_bytes) {
#pragma HLS INLINE
  const bool one = store.segments == 1;
  const uint32_t segment = one ? 0 : row >> store.shift;
  const uint32_t low = one ? row : row & ((1u << store.shift) - 1);
  return (store.address[segment] + uint64_t(low) * record_bytes) / Bus<BusBits>::bytes;
}

/// Passes row ids on up to the first one that is out of bounds. II = 1.
template <int DepthIn, int DepthOut>
void check_rows(uint32_t count, uint32_t total_rows, hls::stream<uint32_t, DepthIn>& in,
                hls::stream<Row, DepthOut>& out, Result& result) {
  Result found = no_result();
  for (uint32_t n = 0; n < count; ++n) {
#pragma HLS PIPELINE II = 1
    const uint32_t row = in.read();
    if (found.status == kOk && row >= total_rows) {
      found.status = kBadIndex;
      found.reason = kRowId;
      found.error_lookup = n;
      found.error_value = row;
    } else if (found.status == kOk) {
      const Row good = {row, false};
      out.write(good);
      ++found.lookups;
    }
  }
  const Row end = {0, true};
  out.write(end);
  result = found;
}

/// Reads records: one burst each, whose length is the record's.
template <int BusBits, int DepthIn, int DepthOut>
void fetch_records(const ap_uint<BusBits>* memory, const Store& store, uint32_t record_bytes,
                   hls::stream<Row, DepthIn>& in, hls::stream<Beat<BusBits>, DepthOut>& out) {
  const uint32_t beats = record_bytes / Bus<BusBits>::bytes;
  Row row = in.read();
  while (!row.end) {
    const uint64_t first = record_index<BusBits>(store, row.row, record_bytes);
    for (uint32_t n = 0; n < beats; ++n) {
#pragma HLS PIPELINE II = 1
      const Beat<BusBits> beat = {memory[first + n], false};
      out.write(beat);
    }
    row = in.read();
  }
  const Beat<BusBits> end = {0, true};
  out.write(end);
}

/// Reads `count` records that lie side by side.
template <int BusBits, int Depth>
void read_records(const ap_uint<BusBits>* memory, uint64_t address, uint32_t count,
                  uint32_t record_bytes, hls::stream<ap_uint<BusBits>, Depth>& out) {
  const uint64_t first = address / Bus<BusBits>::bytes;
  const uint64_t beats = uint64_t(count) * (record_bytes / Bus<BusBits>::bytes);
  for (uint64_t n = 0; n < beats; ++n) {
#pragma HLS PIPELINE II = 1
    out.write(memory[first + n]);
  }
}

/// Writes what comes to consecutive addresses.
template <int BusBits, int Depth>
void store_list(ap_uint<BusBits>* memory, uint64_t address,
                hls::stream<Beat<BusBits>, Depth>& in) {
  uint64_t index = address / Bus<BusBits>::bytes;
  Beat<BusBits> beat = in.read();
  while (!beat.end) {
#pragma HLS PIPELINE II = 1
    memory[index++] = beat.data;
    beat = in.read();
  }
}

/// Writes records to their rows, in order, so that the last of duplicates wins; takes the records
/// behind a bad row id without writing them.
template <int BusBits, int DepthRows, int DepthIn>
void place_records(ap_uint<BusBits>* memory, const Store& store, uint32_t count,
                   uint32_t record_bytes, hls::stream<Row, DepthRows>& rows,
                   hls::stream<ap_uint<BusBits>, DepthIn>& in) {
  const uint32_t beats = record_bytes / Bus<BusBits>::bytes;
  uint32_t placed = 0;
  Row row = rows.read();
  while (!row.end) {
    const uint64_t first = record_index<BusBits>(store, row.row, record_bytes);
    for (uint32_t n = 0; n < beats; ++n) {
#pragma HLS PIPELINE II = 1
      memory[first + n] = in.read();
    }
    ++placed;
    row = rows.read();
  }
  for (uint64_t n = uint64_t(placed) * beats; n < uint64_t(count) * beats; ++n) {
#pragma HLS PIPELINE II = 1
    in.read();
  }
}

}  // namespace hotline
