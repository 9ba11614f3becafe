// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Exact counts of lookups per row, in a byte a row: a count that leaves its byte goes on in a table,
// which holds at most one row for every 256 lookups.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

struct Counter {
  Counter(uint32_t first_row, uint32_t row_count) : first(first_row), low(row_count) {}

  uint64_t count(uint32_t place) const {
    const auto found = high.find(place);
    return low[place] + (found == high.end() ? 0 : found->second);
  }

  uint32_t first;
  std::vector<uint8_t> low;                      // [rows - first]
  std::unordered_map<uint32_t, uint64_t> high;  // multiples of 256, by place in `low`
};

}  // namespace

extern "C" {

/// A counter of the rows `first` ... `rows` - 1, or null if there is no memory for it.
void* hotline_counter_new(uint32_t first, uint32_t rows) {
  try {
    return new Counter(first, rows - first);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void hotline_counter_free(void* counter) { delete static_cast<Counter*>(counter); }

/// Counts row ids [count]; those below `first` are passed over. Returns 0, or 1 if one is too large (then
/// nothing was counted), or -1 without memory.
int32_t hotline_counter_add(void* opaque, const uint32_t* ids, int64_t count) {
  Counter& counter = *static_cast<Counter*>(opaque);
  const uint32_t first = counter.first;
  const uint32_t size = static_cast<uint32_t>(counter.low.size());
  uint32_t greatest = 0;
  for (int64_t i = 0; i < count; ++i) greatest = std::max(greatest, ids[i]);
  if (count > 0 && greatest >= uint64_t{first} + size) return 1;
  uint8_t* const low = counter.low.data();
  // Pinned rows first leave the list: they are most of it, and a branch on them could not be foreseen.
  constexpr int64_t kChunk = 1024, kAhead = 24;
  uint32_t places[kChunk + kAhead];
  try {
    for (int64_t begin = 0; begin < count; begin += kChunk) {
      const int64_t end = std::min(count, begin + kChunk);
      int64_t looked = 0;
      for (int64_t i = begin; i < end; ++i) {
        places[looked] = ids[i] - first;
        looked += ids[i] >= first;
      }
      for (int64_t i = 0; i < std::min(looked, kAhead); ++i) __builtin_prefetch(low + places[i], 1);
      for (int64_t i = 0; i < looked; ++i) {
        if (i + kAhead < looked) __builtin_prefetch(low + places[i + kAhead], 1);
        if (++low[places[i]] == 0) counter.high[places[i]] += 256;
      }
    }
  } catch (const std::exception&) {
    return -1;
  }
  return 0;
}

/// Counts of the rows `ids` [count] to `out`. Rows below `first` were not counted: 0.
void hotline_counter_counts(void* opaque, const uint32_t* ids, int64_t count, uint64_t* out) {
  const Counter& counter = *static_cast<Counter*>(opaque);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t place = ids[i] - counter.first;
    out[i] = ids[i] < counter.first || place >= counter.low.size() ? 0 : counter.count(place);
  }
}

/// The `wanted` rows with the greatest counts above 0, greatest first, rows of equal counts by their
/// ids. Returns how many there are, or -1 without memory.
int64_t hotline_counter_top(void* opaque, int64_t wanted, uint32_t* rows, uint64_t* counts) {
  const Counter& counter = *static_cast<Counter*>(opaque);
  const int64_t size = static_cast<int64_t>(counter.low.size());
  try {
    std::vector<std::pair<uint64_t, uint32_t>> found;
    found.reserve(static_cast<size_t>(std::min(wanted, size)));
    for (const auto& entry : counter.high) {
      found.push_back({entry.second + counter.low[entry.first], entry.first});
    }
    if (static_cast<int64_t>(found.size()) < wanted) {
      // Of the others: all above a threshold, and the first ones at it.
      int64_t histogram[256] = {};
      for (const uint8_t low : counter.low) ++histogram[low];
      for (const auto& entry : counter.high) --histogram[counter.low[entry.first]];
      int64_t left = wanted - static_cast<int64_t>(found.size());
      int threshold = 255;
      while (threshold > 0 && histogram[threshold] <= left) left -= histogram[threshold--];
      for (int64_t place = 0; place < size; ++place) {
        const int low = counter.low[static_cast<size_t>(place)];
        if (low == 0 || low < threshold || (low == threshold && left == 0)) continue;
        if (counter.high.count(static_cast<uint32_t>(place)) != 0) continue;
        left -= low == threshold;
        found.push_back({static_cast<uint64_t>(low), static_cast<uint32_t>(place)});
      }
    }
    const auto before = [](const auto& one, const auto& other) {
      return one.first != other.first ? one.first > other.first : one.second < other.second;
    };
    const auto size_found = std::min(wanted, static_cast<int64_t>(found.size()));
    std::partial_sort(found.begin(), found.begin() + size_found, found.end(), before);
    for (int64_t i = 0; i < size_found; ++i) {
      rows[i] = counter.first + found[static_cast<size_t>(i)].second;
      counts[i] = found[static_cast<size_t>(i)].first;
    }
    return size_found;
  } catch (const std::exception&) {
    return -1;
  }
}

}  // extern "C"
