// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// What both kernels share: codes, permutation, results, words of the bus, reading of lists.
//
// Memory is one array of bus words from address 0 on (m_axi, offset=direct, base 0), so that a byte
// address divided by the bytes of a word is an index. Lists are 32-bit words; those of a kernel's
// outputs that do not fill a bus word are written through a second, 32-bit wide port, because a wide
// port has no strobes in HLS and padding must not be written.
#pragma once

#include <ap_int.h>
#include <hls_stream.h>
#include <stdint.h>

// In the tool a dataflow region is recognised by its pragma; elsewhere each process is a thread.
#ifdef __SYNTHESIS__
#define HOTLINE_DATAFLOW_BEGIN
#define HOTLINE_PROCESS(function, ...) function(__VA_ARGS__)
#define HOTLINE_DATAFLOW_END
#else
#define HOTLINE_DATAFLOW_BEGIN ::hotline::csim::Group hotline_processes;
#define HOTLINE_PROCESS(function, ...) \
  hotline_processes.run(#function, [&] { function(__VA_ARGS__); })
#define HOTLINE_DATAFLOW_END hotline_processes.join();
#endif

namespace hotline {

// Codes of docs/architecture.md; a test compares them with hotline.codes.
enum Operation : uint32_t {
  kClear = 1, kLearn = 2, kFragment = 3, kDump = 4, kLoad = 5, kEvict = 6, kGather = 8, kScatter = 9
};
enum Status : uint32_t { kOk = 0, kBadIndex = 2, kColdOverflow = 3 };
enum Reason : uint32_t { kNone = 0, kRowId = 1, kOffset = 2, kSampleTooLong = 3 };
enum Flags : uint32_t { kPlainList = 1, kFrequencyPolicy = 2 };

/// What a core tells the shell: the fields of the completion record that are not the shell's own.
struct Result {
  uint32_t status, reason;
  uint32_t samples, popular, cold_rows, pinned, eal, cold, lookups;
  uint32_t error_sample, error_lookup, error_value;
};

inline Result no_result() {
  const Result none = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  return none;
}

inline Result bad_index(uint32_t reason, uint32_t sample, uint32_t lookup, uint32_t value) {
  Result result = no_result();
  result.status = kBadIndex;
  result.reason = reason;
  result.error_sample = sample;
  result.error_lookup = lookup;
  result.error_value = value;
  return result;
}

template <int Value>
struct Log2 {
  static const int value = 1 + Log2<Value / 2>::value;
};
template <>
struct Log2<1> {
  static const int value = 0;
};

/// The middle bits of a product: one DSP.
inline ap_uint<16> feistel_round(ap_uint<16> half, ap_uint<16> multiplier, ap_uint<16> constant) {
  const ap_uint<32> product = ap_uint<32>(half ^ constant) * ap_uint<32>(multiplier);
  return product.range(23, 8);
}

/// The bijection whose low bits are an id's set and the others its tag. Four rounds of pure logic.
inline uint32_t permute(uint32_t id) {
#pragma HLS INLINE
  const ap_uint<16> multipliers[4] = {0x9E37, 0x85EB, 0xC2B3, 0x27D5};
  const ap_uint<16> constants[4] = {0x79B9, 0xCA6B, 0xAE35, 0x165F};
  ap_uint<16> left = id >> 16, right = id & 0xFFFF;
  for (int n = 0; n < 4; ++n) {
#pragma HLS UNROLL
    const ap_uint<16> next = left ^ feistel_round(right, multipliers[n], constants[n]);
    left = right;
    right = next;
  }
  return (uint32_t(left) << 16) | uint32_t(right);
}

inline uint32_t unpermute(uint32_t value) {
#pragma HLS INLINE
  const ap_uint<16> multipliers[4] = {0x9E37, 0x85EB, 0xC2B3, 0x27D5};
  const ap_uint<16> constants[4] = {0x79B9, 0xCA6B, 0xAE35, 0x165F};
  ap_uint<16> left = value >> 16, right = value & 0xFFFF;
  for (int n = 3; n >= 0; --n) {
#pragma HLS UNROLL
    const ap_uint<16> before = right ^ feistel_round(left, multipliers[n], constants[n]);
    right = left;
    left = before;
  }
  return (uint32_t(left) << 16) | uint32_t(right);
}

/// The bus: words of so many bits, each of `lanes` 32-bit words.
template <int BusBits>
struct Bus {
  typedef ap_uint<BusBits> word;
  static const int lanes = BusBits / 32;
  static const int bytes = BusBits / 8;
};

constexpr int kBurst = 16;   // beats that are written at a time
constexpr int kDepth = 64;   // of streams behind the memory: a burst may arrive at once

/// Reads the bus words that hold `count` 32-bit words from `address` on. One burst: consecutive
/// addresses, no condition in the loop.
template <int BusBits, int Depth>
void read_list(const ap_uint<BusBits>* memory, uint64_t address, uint32_t count,
               hls::stream<ap_uint<BusBits>, Depth>& out) {
  const uint64_t first = address / Bus<BusBits>::bytes;
  const uint64_t beats = (uint64_t(count) + Bus<BusBits>::lanes - 1) / Bus<BusBits>::lanes;
  for (uint64_t n = 0; n < beats; ++n) {
#pragma HLS PIPELINE II = 1
    out.write(memory[first + n]);
  }
}

/// Splits bus words into 32-bit words. II = 1: the lane is a counter, the word a register.
template <int BusBits, int DepthIn, int DepthOut>
void unpack_list(uint32_t count, hls::stream<ap_uint<BusBits>, DepthIn>& in,
                 hls::stream<uint32_t, DepthOut>& out) {
  ap_uint<BusBits> word = 0;
  int lane = 0;
  for (uint32_t n = 0; n < count; ++n) {
#pragma HLS PIPELINE II = 1
    if (lane == 0) word = in.read();
    out.write(uint32_t(word.range(31, 0)));
    word >>= 32;
    lane = lane == Bus<BusBits>::lanes - 1 ? 0 : lane + 1;
  }
}

}  // namespace hotline
