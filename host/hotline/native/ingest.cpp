// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Ingest: the ids of a mini-batch, feature by feature, become row ids, sample by sample. One pass:
// each id is checked against its own table, the table's base is added, the row id is written.

#include "ingest.hpp"

#include <algorithm>
#include <cstdint>

extern "C" {

enum HotlineIngestCode : int32_t {
  kOk = 0,
  kIdOutOfTable = 1,
  kFirstOffset = 2,     ///< the first offset is not 0
  kNegativeLength = 3,  ///< a length is negative, or an offset is below the one before
  kBeyondValues = 4,    ///< an offset or the sum of lengths exceeds the number of values
  kValuesLeft = 5,      ///< the last offset or the sum of lengths is below the number of values
  kWrongLength = 6,     ///< a sample of a feature with a fixed number of lookups has another
};

}  // extern "C"

namespace {

int64_t load(const char* address, int32_t kind) {
  switch (kind) {
    case kInt32: return *reinterpret_cast<const int32_t*>(address);
    case kUint32: return *reinterpret_cast<const uint32_t*>(address);
    default: return *reinterpret_cast<const int64_t*>(address);
  }
}

/// Converts a run of ids. Returns false if one is out of its table; a negative id is, since it is
/// huge as an unsigned number. No early exit, so that the loop stays tight.
template <typename T>
bool convert(const char* values, int64_t stride, int64_t count, uint64_t rows, uint32_t base,
             uint32_t* out, int64_t out_stride) {
  bool good = true;
  for (int64_t i = 0; i < count; ++i) {
    const T value = *reinterpret_cast<const T*>(values + i * stride);
    const uint64_t id = static_cast<uint64_t>(static_cast<int64_t>(value));
    good &= id < rows;
    out[i * out_stride] = base + static_cast<uint32_t>(id);
  }
  return good;
}

bool convert_kind(int32_t kind, const char* values, int64_t stride, int64_t count, uint64_t rows,
                  uint32_t base, uint32_t* out, int64_t out_stride) {
  switch (kind) {
    case kInt32: return convert<int32_t>(values, stride, count, rows, base, out, out_stride);
    case kUint32: return convert<uint32_t>(values, stride, count, rows, base, out, out_stride);
    default: return convert<int64_t>(values, stride, count, rows, base, out, out_stride);
  }
}

/// All features have fixed numbers of lookups. Columns are converted block by block, so that both
/// the columns and the block of the output stay in the cache. Returns the first sample of a block
/// with an error, or `samples`.
int64_t ingest_fixed(const HotlineFeature* features, int32_t feature_count, int64_t samples,
                     uint32_t* ids) {
  int64_t width = 0;
  for (int32_t f = 0; f < feature_count; ++f) width += features[f].lookups;
  constexpr int64_t kBlock = 64;
  for (int64_t first = 0; first < samples; first += kBlock) {
    const int64_t count = std::min(kBlock, samples - first);
    bool good = true;
    uint32_t* out = ids + first * width;
    for (int32_t f = 0; f < feature_count; ++f) {
      const HotlineFeature& feature = features[f];
      const char* values = feature.values + first * feature.sample_stride;
      for (int64_t lookup = 0; lookup < feature.lookups; ++lookup) {
        good &= convert_kind(feature.kind, values + lookup * feature.lookup_stride,
                             feature.sample_stride, count, feature.rows, feature.base, out++, width);
      }
    }
    if (!good) return first;
  }
  return samples;
}

}  // namespace

extern "C" {

int64_t hotline_ingest(const HotlineFeature* features, int32_t feature_count, int64_t samples,
                       uint32_t* ids, uint32_t* offsets, int64_t* cursors,
                       HotlineIngestError* error) {
  bool fixed = offsets == nullptr;
  int64_t width = 0;
  for (int32_t f = 0; f < feature_count; ++f) {
    const HotlineFeature& feature = features[f];
    fixed &= feature.lookups >= 0 && (feature.required < 0 || feature.required == feature.lookups);
    width += feature.lookups;
  }
  int64_t start = 0;
  if (fixed) {
    start = ingest_fixed(features, feature_count, samples, ids);
    if (start == samples) return samples * width;
  }

  // Sample by sample: the jagged case, and finding the first error of a block.
  auto fail = [error](int32_t code, int32_t feature, int64_t sample, int64_t value) {
    *error = {code, feature, sample, value};
    return int64_t{-1};
  };
  uint32_t* out = ids + (fixed ? start * width : 0);
  int64_t entry = 0;
  if (offsets != nullptr) offsets[entry++] = 0;
  for (int32_t f = 0; f < feature_count; ++f) {
    cursors[f] = 0;
    const HotlineFeature& feature = features[f];
    if (feature.lookups < 0 && feature.edges_are_offsets) {
      const int64_t first = load(feature.edges, feature.edge_kind);
      if (first != 0) return fail(kFirstOffset, f, 0, first);
    }
  }
  for (int64_t sample = start; sample < samples; ++sample) {
    for (int32_t f = 0; f < feature_count; ++f) {
      const HotlineFeature& feature = features[f];
      const char* values;
      int64_t count = feature.lookups;
      if (count >= 0) {
        values = feature.values + sample * feature.sample_stride;
      } else {
        const int64_t cursor = cursors[f];
        int64_t edge;
        if (feature.edges_are_offsets) {
          edge = load(feature.edges + (sample + 1) * feature.edge_stride, feature.edge_kind);
          if (edge < cursor) return fail(kNegativeLength, f, sample, edge);
          count = edge - cursor;
        } else {
          edge = load(feature.edges + sample * feature.edge_stride, feature.edge_kind);
          count = edge;
          if (edge < 0) return fail(kNegativeLength, f, sample, edge);
        }
        if (count > feature.count - cursor) return fail(kBeyondValues, f, sample, edge);
        values = feature.values + cursor * feature.lookup_stride;
        cursors[f] = cursor + count;
        if (sample == samples - 1 && cursors[f] != feature.count) {
          return fail(kValuesLeft, f, sample, edge);
        }
      }
      if (feature.required >= 0 && count != feature.required) {
        return fail(kWrongLength, f, sample, count);
      }
      if (!convert_kind(feature.kind, values, feature.lookup_stride, count, feature.rows,
                        feature.base, out, 1)) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t value = load(values + i * feature.lookup_stride, feature.kind);
          if (static_cast<uint64_t>(value) >= feature.rows) {
            return fail(kIdOutOfTable, f, sample, value);
          }
        }
      }
      out += count;
      if (offsets != nullptr) offsets[entry++] = static_cast<uint32_t>(out - ids);
    }
  }
  for (int32_t f = 0; f < feature_count && samples == 0; ++f) {
    if (features[f].lookups < 0 && features[f].count != 0) {
      return fail(kValuesLeft, f, 0, 0);
    }
  }
  return out - ids;
}

}  // extern "C"
