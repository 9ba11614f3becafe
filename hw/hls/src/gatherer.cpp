// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The gatherer's core: a dataflow region for each direction.
#include "tops.hpp"

#include "hotline/gather.hpp"

namespace {

using namespace hotline;

typedef Beat<HOTLINE_BUS_BITS> beat;

void run_gather(const hotline_word* ids_memory, const hotline_word* records_memory,
                hotline_word* memory, uint32_t lookups, uint32_t total_rows, uint32_t record_bytes,
                uint64_t ids, uint64_t records, const Store& store, Result& result) {
#pragma HLS DATAFLOW
  hls::stream<hotline_word, kDepth> id_words("id words");
  hls::stream<uint32_t, 4> row_ids("row ids");
  hls::stream<Row, kDepth> rows("rows");
  hls::stream<beat, kDepth> beats("record beats");
  HOTLINE_DATAFLOW_BEGIN
  HOTLINE_PROCESS(read_list, ids_memory, ids, lookups, id_words);
  HOTLINE_PROCESS(unpack_list, lookups, id_words, row_ids);
  HOTLINE_PROCESS(check_rows, lookups, total_rows, row_ids, rows, result);
  HOTLINE_PROCESS(fetch_records, records_memory, store, record_bytes, rows, beats);
  HOTLINE_PROCESS(store_list, memory, records, beats);
  HOTLINE_DATAFLOW_END
}

void run_scatter(const hotline_word* ids_memory, const hotline_word* records_memory,
                 hotline_word* memory, uint32_t lookups, uint32_t total_rows, uint32_t record_bytes,
                 uint64_t ids, uint64_t records, const Store& store, Result& result) {
#pragma HLS DATAFLOW
  hls::stream<hotline_word, kDepth> id_words("id words"), beats("record beats");
  hls::stream<uint32_t, 4> row_ids("row ids");
  hls::stream<Row, kDepth> rows("rows");
  HOTLINE_DATAFLOW_BEGIN
  HOTLINE_PROCESS(read_list, ids_memory, ids, lookups, id_words);
  HOTLINE_PROCESS(unpack_list, lookups, id_words, row_ids);
  HOTLINE_PROCESS(check_rows, lookups, total_rows, row_ids, rows, result);
  HOTLINE_PROCESS(read_records, records_memory, records, lookups, record_bytes, beats);
  HOTLINE_PROCESS(place_records, memory, store, lookups, record_bytes, rows, beats);
  HOTLINE_DATAFLOW_END
}

}  // namespace

extern "C" void hotline_gatherer_core(const hotline_word* ids_memory,
                                      const hotline_word* records_memory, hotline_word* memory,
                                      uint32_t operation, uint32_t lookups, uint32_t total_rows,
                                      uint32_t record_bytes, uint32_t segments,
                                      uint32_t segment_shift, uint64_t ids, uint64_t store,
                                      uint64_t records, hotline::Result* result) {
#pragma HLS INTERFACE mode = ap_ctrl_chain port = return
#pragma HLS INTERFACE mode = m_axi port = ids_memory bundle = ids offset = direct
#pragma HLS INTERFACE mode = m_axi port = records_memory bundle = records offset = direct
#pragma HLS INTERFACE mode = m_axi port = memory bundle = writes offset = direct
#pragma HLS INTERFACE mode = ap_none port = result
#pragma HLS DISAGGREGATE variable = result
  using namespace hotline;
  Store where;
  where.segments = segments;
  where.shift = segment_shift;
  where.address[0] = store;
  if (segments > 1 && lookups > 0) read_table(records_memory, store, where);
  Result found = no_result();
  if (operation == kGather) {
    run_gather(ids_memory, records_memory, memory, lookups, total_rows, record_bytes, ids, records,
               where, found);
    if (found.status != kOk) found.lookups = 0;  // the output is void
  } else {
    run_scatter(ids_memory, records_memory, memory, lookups, total_rows, record_bytes, ids, records,
                where, found);
  }
  *result = found;
}
