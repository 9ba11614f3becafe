// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The tops. Arguments are those of docs/register_map.md, already checked by the shell (BAD_CONFIG);
// the shell also sees errors of the bus, counts epochs and writes the completion record.
#pragma once

#include "hotline/common.hpp"

#include "config.hpp"

typedef ap_uint<HOTLINE_BUS_BITS> hotline_word;

extern "C" {

void hotline_fragmenter_core(const hotline_word* ids_memory, const hotline_word* offsets_memory,
                             hotline_word* memory, uint32_t* tail, uint32_t operation,
                             uint32_t flags, uint32_t lookups, uint32_t samples, uint32_t bags,
                             uint32_t lookups_per_sample, uint32_t total_rows, uint32_t pinned_rows,
                             uint32_t cold_base, uint32_t cold_rows_max, uint64_t ids,
                             uint64_t offsets, uint64_t indices, uint64_t popular,
                             uint64_t nonpopular, uint64_t bitmap, uint64_t cold,
                             hotline::Result* result);

void hotline_gatherer_core(const hotline_word* ids_memory, const hotline_word* records_memory,
                           hotline_word* memory, uint32_t operation, uint32_t lookups,
                           uint32_t total_rows, uint32_t record_bytes, uint32_t segments,
                           uint32_t segment_shift, uint64_t ids, uint64_t store, uint64_t records,
                           hotline::Result* result);

}  // extern "C"
