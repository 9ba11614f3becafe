// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The fragmenter's core: one dataflow region for each operation, the EAL between them.
#include "tops.hpp"

#include "hotline/eal.hpp"
#include "hotline/fragment.hpp"
#include "hotline/output.hpp"

namespace {

using namespace hotline;

constexpr int kBus = HOTLINE_BUS_BITS;
constexpr int kSets = HOTLINE_EAL_SETS;
constexpr int kWays = HOTLINE_EAL_WAYS;
constexpr int kRows = HOTLINE_COLD_ROWS;
constexpr int kGenerationBits = HOTLINE_GENERATION_BITS;

typedef Eal<kSets, kWays>::word set_word;
typedef Place<kGenerationBits> place;
typedef OutputWord<kBus> output_word;

/// What stays from job to job. All zero: empty.
set_word eal[kSets];
place table[2 * kRows];
ap_uint<kGenerationBits> generation = 0;

void forget_places() {
  const place none = {0, 0, 0};
  for (int n = 0; n < 2 * kRows; ++n) {
#pragma HLS PIPELINE II = 1
    table[n] = none;
  }
}

void run_fragment(const hotline_word* ids_memory, const hotline_word* offsets_memory,
                  hotline_word* memory, uint32_t* tail, uint32_t lookups, uint32_t samples,
                  uint32_t bags, uint32_t lookups_per_sample, uint32_t total_rows,
                  uint32_t pinned_rows, uint32_t cold_base, uint32_t cold_rows_max, uint64_t ids,
                  uint64_t offsets, const Lists& lists, Result& result) {
#pragma HLS DATAFLOW
  hls::stream<hotline_word, kDepth> id_words("id words"), offset_words("offset words");
  hls::stream<uint32_t, 4> row_ids("row ids"), edges("offsets");
  hls::stream<Lookup, 4> looked_up("lookups");
  hls::stream<Tracked, 4> tracked("tracked lookups");
  hls::stream<SampleLength, 4> lengths("lengths");
  hls::stream<Token, 4> tokens("tokens");
  hls::stream<output_word, kDepth> words("output words");
  const uint32_t entries = bags == 0 ? 0 : samples * bags + 1;
  HOTLINE_DATAFLOW_BEGIN
  HOTLINE_PROCESS(read_list, ids_memory, ids, lookups, id_words);
  HOTLINE_PROCESS(unpack_list, lookups, id_words, row_ids);
  HOTLINE_PROCESS(read_list, offsets_memory, offsets, entries, offset_words);
  HOTLINE_PROCESS(unpack_list, entries, offset_words, edges);
  HOTLINE_PROCESS(sample_lengths, samples, bags, lookups_per_sample, lookups, HOTLINE_LOOKUPS_MAX,
                  edges, lengths);
  HOTLINE_PROCESS((look_up<kSets, kWays>), lookups, total_rows, pinned_rows, eal, row_ids, looked_up);
  HOTLINE_PROCESS((track<kRows, kGenerationBits>), lookups, cold_rows_max, cold_base, generation,
                  table, looked_up, tracked);
  HOTLINE_PROCESS(classify, samples, lookups, lengths, tracked, tokens, result);
  HOTLINE_PROCESS(pack, tokens, words);
  HOTLINE_PROCESS(write_back, memory, tail, lists, words);
  HOTLINE_DATAFLOW_END
}

void run_change(const hotline_word* ids_memory, uint32_t operation, uint32_t flags,
                uint32_t lookups, uint32_t total_rows, uint32_t pinned_rows, uint64_t ids,
                Result& result) {
#pragma HLS DATAFLOW
  hls::stream<hotline_word, kDepth> id_words("id words");
  hls::stream<uint32_t, 4> row_ids("row ids");
  HOTLINE_DATAFLOW_BEGIN
  HOTLINE_PROCESS(read_list, ids_memory, ids, lookups, id_words);
  HOTLINE_PROCESS(unpack_list, lookups, id_words, row_ids);
  HOTLINE_PROCESS((change<kSets, kWays>), operation, flags, lookups, total_rows, pinned_rows, eal,
                  row_ids, result);
  HOTLINE_DATAFLOW_END
}

void run_load(const hotline_word* ids_memory, hotline_word* memory, uint32_t* tail, uint32_t flags,
              uint32_t lookups, uint32_t total_rows, uint32_t pinned_rows, uint64_t ids,
              const Lists& lists, Result& result) {
#pragma HLS DATAFLOW
  hls::stream<hotline_word, kDepth> entry_words("entry words");
  hls::stream<uint32_t, 4> entries("entries");
  hls::stream<Token, 4> tokens("tokens");
  hls::stream<output_word, kDepth> words("output words");
  const uint32_t count = (flags & kPlainList) != 0 ? lookups : 2 * lookups;
  HOTLINE_DATAFLOW_BEGIN
  HOTLINE_PROCESS(read_list, ids_memory, ids, count, entry_words);
  HOTLINE_PROCESS(unpack_list, count, entry_words, entries);
  HOTLINE_PROCESS((load<kSets, kWays>), flags, lookups, total_rows, pinned_rows, eal, entries, tokens,
                  result);
  HOTLINE_PROCESS(pack, tokens, words);
  HOTLINE_PROCESS(write_back, memory, tail, lists, words);
  HOTLINE_DATAFLOW_END
}

void run_dump(hotline_word* memory, uint32_t* tail, uint32_t pinned_rows, const Lists& lists,
              Result& result) {
#pragma HLS DATAFLOW
  hls::stream<Token, 4> tokens("tokens");
  hls::stream<output_word, kDepth> words("output words");
  HOTLINE_DATAFLOW_BEGIN
  HOTLINE_PROCESS((dump<kSets, kWays>), pinned_rows, eal, tokens, result);
  HOTLINE_PROCESS(pack, tokens, words);
  HOTLINE_PROCESS(write_back, memory, tail, lists, words);
  HOTLINE_DATAFLOW_END
}

}  // namespace

extern "C" void hotline_fragmenter_core(
    const hotline_word* ids_memory, const hotline_word* offsets_memory, hotline_word* memory,
    uint32_t* tail, uint32_t operation, uint32_t flags, uint32_t lookups, uint32_t samples,
    uint32_t bags, uint32_t lookups_per_sample, uint32_t total_rows, uint32_t pinned_rows,
    uint32_t cold_base, uint32_t cold_rows_max, uint64_t ids, uint64_t offsets, uint64_t indices,
    uint64_t popular, uint64_t nonpopular, uint64_t bitmap, uint64_t cold,
    hotline::Result* result) {
#pragma HLS INTERFACE mode = ap_ctrl_chain port = return
#pragma HLS INTERFACE mode = m_axi port = ids_memory bundle = ids offset = direct
#pragma HLS INTERFACE mode = m_axi port = offsets_memory bundle = offsets offset = direct
#pragma HLS INTERFACE mode = m_axi port = memory bundle = lists offset = direct
#pragma HLS INTERFACE mode = m_axi port = tail bundle = tail offset = direct
#pragma HLS INTERFACE mode = ap_none port = result
#pragma HLS DISAGGREGATE variable = result
#pragma HLS BIND_STORAGE variable = eal type = ram_2p
#pragma HLS BIND_STORAGE variable = table type = ram_2p
  using namespace hotline;
  const Lists lists = {{indices, popular, nonpopular, bitmap, cold}};
  Result found = no_result();
  switch (operation) {
    case kClear:
      clear<kSets, kWays>(eal);
      break;
    case kLearn:
    case kEvict:
      run_change(ids_memory, operation, flags, lookups, total_rows, pinned_rows, ids, found);
      break;
    case kLoad:
      run_load(ids_memory, memory, tail, flags, lookups, total_rows, pinned_rows, ids, lists, found);
      break;
    case kDump:
      run_dump(memory, tail, pinned_rows, lists, found);
      break;
    default:
      ++generation;
      if (generation == 0) {  // places of a job long ago would look like those of this one
        forget_places();
        generation = 1;
      }
      run_fragment(ids_memory, offsets_memory, memory, tail, lookups, samples, bags,
                   lookups_per_sample, total_rows, pinned_rows, cold_base, cold_rows_max, ids,
                   offsets, lists, found);
      break;
  }
  *result = found;
}
