// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// The input of a mini-batch as its owner has it: ids by feature, in arrays of any integer type.

#pragma once

#include <cstdint>

extern "C" {

/// Element type of an input array.
enum HotlineKind : int32_t { kInt32 = 0, kInt64 = 1, kUint32 = 2, kUint64 = 3 };

/// One feature's input. Strides are in bytes and may be negative, as NumPy's.
struct HotlineFeature {
  const char* values;     ///< [samples, lookups], or [count] if jagged
  int64_t sample_stride;  ///< of values, if not jagged
  int64_t lookup_stride;  ///< from one value to the next
  int64_t lookups;        ///< lookups of every sample; -1: jagged
  int64_t count;          ///< values there are, if jagged
  const char* edges;      ///< jagged: [samples] lengths or [samples + 1] offsets
  int64_t edge_stride;
  int64_t required;  ///< lookups that every sample must have; -1: any number
  uint64_t rows;     ///< rows of the feature's table
  uint32_t base;     ///< row id of the table's row 0
  int32_t kind;      ///< HotlineKind of values
  int32_t edge_kind;
  int32_t edges_are_offsets;
};

/// What was wrong, and where. `value` is the bit pattern of an int64_t (uint64_t for kUint64).
struct HotlineIngestError {
  int32_t code;
  int32_t feature;
  int64_t sample;
  int64_t value;
};

/// Converts a mini-batch.
///
/// `ids` has room for all lookups. `offsets`, if not null, for samples * feature_count + 1 entries.
/// `cursors` for feature_count entries. Returns the number of lookups written, or -1 with `error` set
/// to the first error in the order sample, feature, lookup.
int64_t hotline_ingest(const HotlineFeature* features, int32_t feature_count, int64_t samples,
                       uint32_t* ids, uint32_t* offsets, int64_t* cursors,
                       HotlineIngestError* error);

}  // extern "C"
