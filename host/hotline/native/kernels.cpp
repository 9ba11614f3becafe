// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Both kernels on the host: the operations of docs/architecture.md, bit-equal to hotline.reference.
//
// The EAL keeps the permuted row id of an entry (set and tag at once) in `keys`: a set of 16 ways is
// one cache line, compared in two vector instructions. Lookups are taken in chunks: those that are
// not pinned are listed, permuted together, their sets prefetched, then compared, so that the
// memory's latency is paid once a chunk and not once a lookup.
//
// From the ids of the features (hotline_fragmenter_fragment_features) a block of samples is taken
// feature by feature: what is pinned is only rebased, and a column of ids is converted and permuted
// in vectors. FRAGMENT has two passes. The first finds the slots; lookups do not depend on one another, so it may
// run on several threads. The second walks over the samples in order and gives positions to cold
// rows. What the first has found beyond the point where the job ends is not looked at.

#include "ingest.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HOTLINE_AVX2 1
#else
#define HOTLINE_AVX2 0
#endif
// One build runs everywhere: the loader of glibc picks the clone that the processor has.
#if HOTLINE_AVX2 && defined(__GLIBC__) && (!defined(__clang__) || __clang_major__ >= 14)
#define HOTLINE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define HOTLINE_CLONES
#endif

extern "C" {

/// What a job gives; the fields of the completion record that are not the caller's.
struct HotlineResult {
  int32_t status;
  int32_t reason;
  uint32_t samples, popular, cold_rows, pinned, eal, cold, lookups;
  uint32_t error_sample, error_lookup, error_value;
};

/// Arguments of FRAGMENT, as in the register map.
struct HotlineFragment {
  const uint32_t* ids;
  const uint32_t* offsets;  ///< null: fixed
  uint32_t* indices;
  uint32_t* popular;
  uint32_t* nonpopular;
  uint32_t* bitmap;
  uint32_t* cold;
  int64_t lookups;
  int64_t samples;
  int64_t bags;
  int64_t lookups_per_sample;
  int64_t lookups_max;
  uint32_t total_rows, pinned_rows, cold_base, cold_rows_max;
  int32_t threads;
  int32_t reserved;
};

/// An entry of a LOAD or a DUMP.
struct HotlineEntry {
  uint32_t row;
  uint32_t slot_counter;
};

}  // extern "C"

namespace {

// Codes of hotline.codes; a test compares them.
enum Status : int32_t { kFailed = -1, kOk = 0, kBadIndex = 2, kColdOverflow = 3 };
enum Reason : int32_t { kRowId = 1, kOffset = 2, kSampleTooLong = 3 };
enum Policy : int32_t { kSrrip = 0, kFrequency = 1 };

constexpr uint32_t kMultiplier[4] = {0x9E37, 0x85EB, 0xC2B3, 0x27D5};
constexpr uint32_t kConstant[4] = {0x79B9, 0xCA6B, 0xAE35, 0x165F};
constexpr uint8_t kHit = 0, kInsert = 2, kVictim = 3;

constexpr uint32_t permute(uint32_t id) {
  uint32_t left = id >> 16, right = id & 0xffff;
  for (int r = 0; r < 4; ++r) {
    const uint32_t next = left ^ ((((right ^ kConstant[r]) * kMultiplier[r]) >> 8) & 0xffff);
    left = right;
    right = next;
  }
  return left << 16 | right;
}

uint32_t unpermute(uint32_t value) {
  uint32_t left = value >> 16, right = value & 0xffff;
  for (int r = 3; r >= 0; --r) {
    const uint32_t before = right ^ ((((left ^ kConstant[r]) * kMultiplier[r]) >> 8) & 0xffff);
    right = left;
    left = before;
  }
  return left << 16 | right;
}

HOTLINE_CLONES
void permute_all(const uint32_t* ids, uint32_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = permute(ids[i]);
}

/// Row ids end at 2**32 - 3, so that this is the key of no row.
constexpr uint32_t kInvalid = permute(0xffffffff);
constexpr int64_t kChunk = 1024;

int find_portable(const uint32_t* keys, int ways, uint32_t key) {
  for (int way = 0; way < ways; ++way) {
    if (keys[way] == key) return way;
  }
  return -1;
}

#if HOTLINE_AVX2
__attribute__((target("avx2"))) inline int find16(const uint32_t* keys, uint32_t key) {
  const __m256i wanted = _mm256_set1_epi32(static_cast<int>(key));
  const __m256i* words = reinterpret_cast<const __m256i*>(keys);
  const __m256i low = _mm256_cmpeq_epi32(_mm256_load_si256(words), wanted);
  const __m256i high = _mm256_cmpeq_epi32(_mm256_load_si256(words + 1), wanted);
  const uint32_t mask = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(low))) |
                        static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(high))) << 8;
  return mask != 0 ? __builtin_ctz(mask) : -1;
}

__attribute__((target("avx2"))) int64_t slots16(const uint32_t* keys, uint32_t set_mask,
                                                const uint32_t* wanted, const uint32_t* where,
                                                int64_t count, uint32_t pinned, uint32_t begin,
                                                uint32_t* out, uint32_t* cold) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t first = (wanted[i] & set_mask) * 16;
    const int way = find16(keys + first, wanted[i]);
    out[where[i]] = pinned + first + static_cast<uint32_t>(way);
    cold[found] = begin + where[i];
    found += way < 0;
  }
  return found;
}

bool has_avx2() {
  static const bool found = __builtin_cpu_supports("avx2") != 0;
  return found;
}
#endif

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

class Eal {
 public:
  Eal(int64_t sets, int ways)
      : ways_(ways), sets_(sets), entries_(sets * ways),
        mask_(static_cast<uint32_t>(sets - 1)), counters_(static_cast<size_t>(sets * ways)) {
    while ((int64_t{1} << set_bits_) < sets) ++set_bits_;
    const size_t bytes = (static_cast<size_t>(entries_) * 4 + 63) / 64 * 64;
    keys_.reset(static_cast<uint32_t*>(std::aligned_alloc(64, bytes)));
    if (keys_ == nullptr) throw std::bad_alloc();
    clear();
  }

  void clear() {
    std::fill(keys_.get(), keys_.get() + entries_, kInvalid);
    std::fill(counters_.begin(), counters_.end(), uint8_t{0});
  }

  int find(const uint32_t* keys, uint32_t key) const {
#if HOTLINE_AVX2
    if (ways_ == 16 && has_avx2()) return find16(keys, key);
#endif
    return find_portable(keys, ways_, key);
  }

  int64_t first_of(uint32_t key) const { return int64_t{key & mask_} * ways_; }
  uint32_t* keys(int64_t first) { return keys_.get() + first; }
  uint8_t* counters(int64_t first) { return counters_.data() + first; }
  const uint32_t* data() const { return keys_.get(); }
  uint32_t mask() const { return mask_; }
  int ways() const { return ways_; }
  int64_t entries() const { return entries_; }

  void prefetch(uint32_t key) const { __builtin_prefetch(keys_.get() + first_of(key)); }

  struct Found {
    int64_t bad;     // the first lookup whose row id is not below the total, or the end
    int64_t cold;    // cold lookups
    int64_t pinned;  // pinned ones
  };

  /// Slots of the lookups `start` ... `end` - 1, to `out` by number; the numbers of the cold ones, in
  /// order, to `cold`, which has room for all and one more.
  Found slots(const uint32_t* ids, int64_t start, int64_t end, uint32_t total, uint32_t pinned,
              uint32_t* out, uint32_t* cold) const {
    uint32_t rows[kChunk], wanted[kChunk], where[kChunk];
    Found result{end, 0, 0};
    int64_t& bad = result.bad;
    for (int64_t begin = start; begin < end; begin += kChunk) {
      const int64_t size = std::min(kChunk, end - begin);
      const uint32_t* part = ids + begin;
      int64_t looked = 0;
      uint32_t greatest = 0;
      for (int64_t i = 0; i < size; ++i) {
        const uint32_t row = part[i];
        out[begin + i] = row;
        greatest = std::max(greatest, row);
        rows[looked] = row;
        where[looked] = static_cast<uint32_t>(i);
        looked += row >= pinned;
      }
      if (greatest >= total && bad == end) {
        bad = begin + (std::find_if(part, part + size, [=](uint32_t r) { return r >= total; }) - part);
      }
      result.pinned += size - looked;
      permute_all(rows, wanted, looked);
      for (int64_t i = 0; i < looked; ++i) prefetch(wanted[i]);
#if HOTLINE_AVX2
      if (ways_ == 16 && has_avx2()) {
        result.cold += slots16(keys_.get(), mask_, wanted, where, looked, pinned,
                               static_cast<uint32_t>(begin), out + begin, cold + result.cold);
        continue;
      }
#endif
      for (int64_t i = 0; i < looked; ++i) {
        const int64_t first = first_of(wanted[i]);
        const int way = find_portable(keys_.get() + first, ways_, wanted[i]);
        out[begin + where[i]] = pinned + static_cast<uint32_t>(first + way);
        cold[result.cold] = static_cast<uint32_t>(begin + where[i]);
        result.cold += way < 0;
      }
    }
    return result;
  }

  /// LEARN of one row that is not pinned. Returns whether it was there.
  bool learn(uint32_t key, int32_t policy) {
    const int64_t first = first_of(key);
    uint32_t* keys = keys_.get() + first;
    uint8_t* counters = counters_.data() + first;
    int way = find(keys, key);
    if (way >= 0) {
      if (policy == kSrrip) {
        counters[way] = kHit;
      } else {
        counters[way] -= counters[way] != 0;
      }
      return true;
    }
    way = find(keys, kInvalid);
    if (way < 0) way = policy == kSrrip ? replace(counters) : challenge(counters, key);
    if (way >= 0) {
      keys[way] = key;
      counters[way] = policy == kSrrip ? kInsert : kVictim;
    }
    return false;
  }

  uint32_t row(int64_t entry) const { return unpermute(keys_.get()[entry]); }
  bool valid(int64_t entry) const { return keys_.get()[entry] != kInvalid; }
  uint8_t counter(int64_t entry) const { return counters_[static_cast<size_t>(entry)]; }

 private:
  int replace(uint8_t* counters) const {
    uint8_t greatest = 0;
    for (int way = 0; way < ways_; ++way) greatest = std::max(greatest, counters[way]);
    int victim = -1;
    for (int way = ways_ - 1; way >= 0; --way) {
      counters[way] = static_cast<uint8_t>(counters[way] + kVictim - greatest);
      if (counters[way] == kVictim) victim = way;
    }
    return victim;
  }

  int challenge(uint8_t* counters, uint32_t key) const {
    const int start = static_cast<int>((set_bits_ == 32 ? 0 : key >> set_bits_) &
                                       static_cast<uint32_t>(ways_ - 1));
    int victim = start;
    for (int step = 1; step < ways_; ++step) {
      const int way = (start + step) & (ways_ - 1);
      if (counters[way] > counters[victim]) victim = way;
    }
    if (counters[victim] == kVictim) return victim;
    ++counters[victim];
    return -1;
  }

  int ways_;
  int set_bits_ = 0;
  int64_t sets_, entries_;
  uint32_t mask_;
  std::unique_ptr<uint32_t[], Free> keys_;
  std::vector<uint8_t> counters_;
};

/// Positions of the cold rows of a job. A place of the table counts only in the job that has filled
/// it, so that a new job begins with nothing to clear.
class Tracker {
 public:
  explicit Tracker(int64_t rows_max) {
    int64_t size = 64;
    while (size < 2 * rows_max) size *= 2;
    table_.resize(static_cast<size_t>(size));
    mask_ = static_cast<uint32_t>(size - 1);
  }

  void begin() {
    if (++job_ == 0) {
      std::fill(table_.begin(), table_.end(), Place{});
      job_ = 1;
    }
  }

  /// Position of a row, or `next` if it is new, with the place where it belongs in `place`.
  uint32_t find(uint32_t row, uint32_t next, uint32_t& place) const {
    for (place = (row * 0x9E3779B1u >> 7) & mask_;; place = (place + 1) & mask_) {
      const Place& found = table_[place];
      if (found.job != job_) return next;
      if (found.row == row) return found.position;
    }
  }

  void prefetch(uint32_t row) const {
    __builtin_prefetch(table_.data() + ((row * 0x9E3779B1u >> 7) & mask_), 1);
  }

  void put(uint32_t place, uint32_t row, uint32_t position) { table_[place] = {job_, row, position}; }

 private:
  struct Place {
    uint32_t job = 0, row = 0, position = 0;
  };
  std::vector<Place> table_;
  uint32_t mask_;
  uint32_t job_ = 0;
};

struct Fragmenter {
  Fragmenter(int64_t sets, int ways, int64_t cold_rows_max) : eal(sets, ways), tracker(cold_rows_max) {}
  Eal eal;
  Tracker tracker;
  std::vector<uint32_t> cold;  // scratch of FRAGMENT: numbers of the cold lookups
};

/// A column of the input: one lookup of a feature, of all samples.
struct Column {
  const char* values;
  int64_t stride;
  uint64_t rows;
  uint32_t base;
  int32_t kind;
  int32_t number;  // of the lookup in its sample
};

template <typename T>
inline bool rebase(const char* values, int64_t stride, int64_t count, uint64_t rows, uint32_t base,
                   uint32_t* out) {
  bool good = true;
  if (stride == sizeof(T)) {
    const T* column = reinterpret_cast<const T*>(values);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t id = static_cast<uint64_t>(static_cast<int64_t>(column[i]));
      good &= id < rows;
      out[i] = base + static_cast<uint32_t>(id);
    }
    return good;
  }
  for (int64_t i = 0; i < count; ++i) {
    const T value = *reinterpret_cast<const T*>(values + i * stride);
    const uint64_t id = static_cast<uint64_t>(static_cast<int64_t>(value));
    good &= id < rows;
    out[i] = base + static_cast<uint32_t>(id);
  }
  return good;
}

HOTLINE_CLONES
bool rebase_column(const Column& column, int64_t first, int64_t count, uint32_t* out) {
  const char* values = column.values + first * column.stride;
  switch (column.kind) {
    case kInt32:
      return rebase<int32_t>(values, column.stride, count, column.rows, column.base, out);
    case kUint32:
      return rebase<uint32_t>(values, column.stride, count, column.rows, column.base, out);
    default:
      return rebase<int64_t>(values, column.stride, count, column.rows, column.base, out);
  }
}

template <typename T>
inline bool rebase_twice(const char* values, int64_t stride, int64_t count, uint64_t rows,
                         uint32_t base, int64_t width, uint32_t* ids, uint32_t* out) {
  bool good = true;
  for (int64_t i = 0; i < count; ++i) {
    const T value = *reinterpret_cast<const T*>(values + i * stride);
    const uint64_t id = static_cast<uint64_t>(static_cast<int64_t>(value));
    good &= id < rows;
    ids[i * width] = out[i * width] = base + static_cast<uint32_t>(id);
  }
  return good;
}

/// A column of a pinned table: the row id is the index.
bool rebase_pinned(const Column& column, int64_t first, int64_t count, int64_t width,
                   uint32_t* ids, uint32_t* out) {
  const char* values = column.values + first * column.stride;
  ids += column.number;
  out += column.number;
  switch (column.kind) {
    case kInt32:
      return rebase_twice<int32_t>(values, column.stride, count, column.rows, column.base, width,
                                   ids, out);
    case kUint32:
      return rebase_twice<uint32_t>(values, column.stride, count, column.rows, column.base, width,
                                    ids, out);
    default:
      return rebase_twice<int64_t>(values, column.stride, count, column.rows, column.base, width,
                                   ids, out);
  }
}

#if HOTLINE_AVX2
__attribute__((target("avx2"))) void column16(const uint32_t* keys, uint32_t set_mask,
                                              const uint32_t* wanted, int64_t count,
                                              uint32_t pinned, uint64_t bit, int64_t width,
                                              uint32_t* out, uint64_t* cold) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t first = (wanted[i] & set_mask) * 16;
    const int way = find16(keys + first, wanted[i]);
    out[i * width] = pinned + first + static_cast<uint32_t>(way);
    cold[i] |= way < 0 ? bit : 0;
  }
}
#endif

constexpr int64_t kBlock = 64;    // samples
constexpr int64_t kColumns = 64;  // columns that are looked up, at most: bits of a word

HotlineResult bad(Reason reason, int64_t sample, int64_t lookup, uint32_t value) {
  HotlineResult result{};
  result.status = kBadIndex;
  result.reason = reason;
  result.error_sample = static_cast<uint32_t>(sample);
  result.error_lookup = static_cast<uint32_t>(lookup);
  result.error_value = value;
  return result;
}

int64_t first_bad(const uint32_t* ids, int64_t count, uint32_t total) {
  return std::find_if(ids, ids + count, [=](uint32_t row) { return row >= total; }) - ids;
}

/// What the first pass of FRAGMENT gives.
struct Slots {
  int64_t bad;     // the first lookup with a bad row id, or the number of lookups
  int64_t pinned;  // pinned lookups
  int64_t cold;    // cold ones; their numbers are in Fragmenter::cold
};

Slots find_slots(Fragmenter& owner, const HotlineFragment& job) {
  constexpr int64_t kLeast = 1 << 15;  // below, a thread costs more than it saves
  const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(job.threads, job.lookups / kLeast));
  const size_t room = static_cast<size_t>(job.lookups + parts);
  if (owner.cold.size() < room) owner.cold.resize(room);
  std::vector<Eal::Found> found(static_cast<size_t>(parts));
  auto begin_of = [&](int64_t n) { return job.lookups * n / parts; };
  auto part = [&](int64_t n) {
    found[static_cast<size_t>(n)] =
        owner.eal.slots(job.ids, begin_of(n), begin_of(n + 1), job.total_rows, job.pinned_rows,
                        job.indices, owner.cold.data() + begin_of(n) + n);
  };
  std::vector<std::thread> threads;
  for (int64_t n = 1; n < parts; ++n) threads.emplace_back(part, n);
  part(0);
  for (auto& thread : threads) thread.join();
  Slots result{job.lookups, 0, 0};
  for (int64_t n = 0; n < parts; ++n) {
    const Eal::Found& one = found[static_cast<size_t>(n)];
    if (one.bad < begin_of(n + 1)) result.bad = std::min(result.bad, one.bad);
    const uint32_t* from = owner.cold.data() + begin_of(n) + n;
    if (n > 0) std::copy(from, from + one.cold, owner.cold.data() + result.cold);
    result.cold += one.cold;
    result.pinned += one.pinned;
  }
  return result;
}

/// The first pass from the ids of features with fixed numbers of lookups. Writes the row ids, too.
/// Returns false if an id is out of its table.
bool find_slots_of_columns(Fragmenter& owner, const std::vector<Column>& pinned,
                           const std::vector<Column>& looked, const HotlineFragment& job,
                           uint32_t* ids, Slots& result) {
  const Eal& eal = owner.eal;
  const int64_t width = job.lookups_per_sample;
  if (owner.cold.size() < static_cast<size_t>(job.lookups) + 1) {
    owner.cold.resize(static_cast<size_t>(job.lookups) + 1);
  }
  result = {job.lookups, static_cast<int64_t>(pinned.size()) * job.samples, 0};
  uint32_t rows[kBlock], wanted[kColumns][kBlock];
  for (int64_t first = 0; first < job.samples; first += kBlock) {
    const int64_t count = std::min(kBlock, job.samples - first);
    uint32_t* block_ids = ids + first * width;
    uint32_t* block_out = job.indices + first * width;
    for (size_t c = 0; c < looked.size(); ++c) {
      if (!rebase_column(looked[c], first, count, rows)) return false;
      permute_all(rows, wanted[c], count);
      for (int64_t i = 0; i < count; ++i) {
        eal.prefetch(wanted[c][i]);
        block_ids[i * width + looked[c].number] = rows[i];
      }
    }
    for (const Column& column : pinned) {
      if (!rebase_pinned(column, first, count, width, block_ids, block_out)) return false;
    }
    uint64_t cold[kBlock] = {};
    for (size_t c = 0; c < looked.size(); ++c) {
      uint32_t* out = block_out + looked[c].number;
#if HOTLINE_AVX2
      if (eal.ways() == 16 && has_avx2()) {
        column16(eal.data(), eal.mask(), wanted[c], count, job.pinned_rows, uint64_t{1} << c, width,
                 out, cold);
        continue;
      }
#endif
      for (int64_t i = 0; i < count; ++i) {
        const int64_t place = eal.first_of(wanted[c][i]);
        const int way = find_portable(eal.data() + place, eal.ways(), wanted[c][i]);
        out[i * width] = job.pinned_rows + static_cast<uint32_t>(place + way);
        cold[i] |= static_cast<uint64_t>(way < 0) << c;
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      for (uint64_t bits = cold[i]; bits != 0; bits &= bits - 1) {
        const Column& column = looked[static_cast<size_t>(__builtin_ctzll(bits))];
        owner.cold[static_cast<size_t>(result.cold++)] =
            static_cast<uint32_t>((first + i) * width + column.number);
      }
    }
  }
  return true;
}

/// The second pass: samples in order. Its work is that of the samples and of the cold lookups.
HotlineResult walk_samples(Fragmenter& owner, const HotlineFragment& job, const Slots& slots) {
  HotlineResult result{};
  Tracker& tracker = owner.tracker;
  tracker.begin();
  const int64_t last_entry = job.samples * job.bags;
  if (job.bags != 0 &&
      (job.offsets[0] != 0 || (last_entry == 0 && job.offsets[0] != job.lookups))) {
    return bad(kOffset, 0, 0, job.offsets[0]);
  }
  constexpr int64_t kAhead = 12;
  const uint32_t* next = owner.cold.data();  // the next cold lookup
  const uint32_t* const end = next + slots.cold;
  uint32_t cold = 0;  // positions given to the samples before
  uint32_t popular = 0, word = 0;
  int64_t first = 0, last = 0, sample = 0;
  for (; sample < job.samples; ++sample) {
    first = last;
    if (job.bags != 0) {
      for (int64_t entry = sample * job.bags + 1; entry <= sample * job.bags + job.bags; ++entry) {
        const uint32_t edge = job.offsets[entry];
        if (edge < job.offsets[entry - 1] || edge > job.lookups ||
            (entry == last_entry && edge != job.lookups)) {
          return bad(kOffset, sample, entry, edge);
        }
      }
      last = job.offsets[sample * job.bags + job.bags];
      if (last - first > job.lookups_max) {
        return bad(kSampleTooLong, sample, first, static_cast<uint32_t>(last - first));
      }
    } else {
      last = first + job.lookups_per_sample;
    }
    const uint32_t* const begin = next;
    const int64_t stop = std::min(last, slots.bad);
    uint32_t added = cold;
    for (; next != end && *next < stop; ++next) {
      if (end - next > kAhead) tracker.prefetch(job.ids[next[kAhead]]);
      const uint32_t row = job.ids[*next];
      uint32_t place;
      const uint32_t position = tracker.find(row, added, place);
      if (position == added) {
        if (added == job.cold_rows_max) {
          result.status = kColdOverflow;
          break;
        }
        tracker.put(place, row, added);
        job.cold[added++] = row;
      }
      job.indices[*next] = job.cold_base + position;
    }
    if (result.status != kOk) {
      next = begin;
      break;
    }
    if (slots.bad < last) return bad(kRowId, sample, slots.bad, job.ids[slots.bad]);
    cold = added;
    // Both lists are written, and only one grows: an unforeseeable branch would cost more.
    const uint32_t hot = next == begin;
    job.popular[popular] = static_cast<uint32_t>(sample);
    job.nonpopular[sample - popular] = static_cast<uint32_t>(sample);
    popular += hot;
    word |= hot << (sample & 31);
    if ((sample & 31) == 31) {
      job.bitmap[sample >> 5] = word;
      word = 0;
    }
  }
  if ((sample & 31) != 0) job.bitmap[sample >> 5] = word;
  const int64_t lookups = result.status == kOk ? last : first;
  result.samples = static_cast<uint32_t>(sample);
  result.popular = popular;
  result.cold_rows = cold;
  result.lookups = static_cast<uint32_t>(lookups);
  result.cold = static_cast<uint32_t>(next - owner.cold.data());
  result.pinned = static_cast<uint32_t>(slots.pinned);
  if (lookups < job.lookups) {
    result.pinned = static_cast<uint32_t>(std::count_if(
        job.ids, job.ids + lookups, [&](uint32_t row) { return row < job.pinned_rows; }));
  }
  result.eal = result.lookups - result.pinned - result.cold;
  return result;
}

/// Where the records are.
struct Store {
  const uint64_t* segments;
  int32_t shift;
  int64_t record_bytes;

  uint8_t* operator[](uint32_t row) const {
    const uint64_t segment = segments[static_cast<uint64_t>(row) >> shift];
    const uint64_t low = (uint64_t{1} << shift) - 1;
    return reinterpret_cast<uint8_t*>(segment) + static_cast<int64_t>(row & low) * record_bytes;
  }
};

/// Copies records to the store or from it; kBytes: their size, 0: any.
template <bool kScatter, int64_t kBytes>
void copy(const uint32_t* ids, int64_t count, const Store& store, uint8_t* records) {
  constexpr int64_t kAhead = 32;
  const int64_t bytes = kBytes != 0 ? kBytes : store.record_bytes;
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      const uint8_t* later = store[ids[i + kAhead]];
      for (int64_t byte = 0; byte < bytes; byte += 64) {
        __builtin_prefetch(later + byte, kScatter ? 1 : 0);
      }
    }
    uint8_t* there = store[ids[i]];
    uint8_t* here = records + i * bytes;
    std::memcpy(kScatter ? there : here, kScatter ? here : there, static_cast<size_t>(bytes));
  }
}

}  // namespace

extern "C" {

/// A fragmenter, or null if there is no memory for it.
void* hotline_fragmenter_new(int64_t sets, int32_t ways, int64_t cold_rows_max) {
  try {
    return new Fragmenter(sets, ways, cold_rows_max);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void hotline_fragmenter_free(void* fragmenter) { delete static_cast<Fragmenter*>(fragmenter); }

void hotline_fragmenter_clear(void* fragmenter) { static_cast<Fragmenter*>(fragmenter)->eal.clear(); }

/// LEARN of row ids [count].
void hotline_fragmenter_learn(void* fragmenter, const uint32_t* ids, int64_t count, uint32_t total,
                              uint32_t pinned, int32_t policy, HotlineResult* result) {
  Eal& eal = static_cast<Fragmenter*>(fragmenter)->eal;
  const int64_t good = first_bad(ids, count, total);
  *result = good < count ? bad(kRowId, 0, good, ids[good]) : HotlineResult{};
  uint32_t rows[kChunk], wanted[kChunk];
  for (int64_t begin = 0; begin < good; begin += kChunk) {
    const int64_t size = std::min(kChunk, good - begin);
    int64_t looked = 0;
    for (int64_t i = 0; i < size; ++i) {
      rows[looked] = ids[begin + i];
      looked += ids[begin + i] >= pinned;
    }
    permute_all(rows, wanted, looked);
    for (int64_t i = 0; i < looked; ++i) {
      eal.prefetch(wanted[i]);
      __builtin_prefetch(eal.counters(eal.first_of(wanted[i])));
    }
    uint32_t hits = 0;
    for (int64_t i = 0; i < looked; ++i) hits += eal.learn(wanted[i], policy);
    result->pinned += static_cast<uint32_t>(size - looked);
    result->eal += hits;
    result->cold += static_cast<uint32_t>(looked) - hits;
  }
  result->lookups = static_cast<uint32_t>(good);
}

/// LOAD of entries [count], or of row ids if `plain`; those without a way go to `rejected`.
void hotline_fragmenter_load(void* fragmenter, const void* source, int64_t count, uint32_t total,
                             uint32_t pinned, int32_t plain, void* rejected,
                             HotlineResult* result) {
  Eal& eal = static_cast<Fragmenter*>(fragmenter)->eal;
  const uint32_t* rows = static_cast<const uint32_t*>(source);
  const HotlineEntry* entries = static_cast<const HotlineEntry*>(source);
  *result = HotlineResult{};
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t row = plain != 0 ? rows[i] : entries[i].row;
    if (row >= total) {
      const HotlineResult counts = *result;
      *result = bad(kRowId, 0, i, row);
      result->pinned = counts.pinned;
      result->eal = counts.eal;
      result->cold = counts.cold;
      result->cold_rows = counts.cold_rows;
      result->lookups = counts.lookups;
      return;
    }
    ++result->lookups;
    if (row < pinned) {
      ++result->pinned;
      continue;
    }
    const uint32_t key = permute(row);
    const int64_t first = eal.first_of(key);
    if (eal.find(eal.keys(first), key) >= 0) {
      ++result->eal;
      continue;
    }
    ++result->cold;
    const int way = eal.find(eal.keys(first), kInvalid);
    if (way >= 0) {
      eal.keys(first)[way] = key;
      eal.counters(first)[way] =
          plain != 0 ? kInsert : static_cast<uint8_t>(entries[i].slot_counter >> 30);
    } else if (plain != 0) {
      static_cast<uint32_t*>(rejected)[result->cold_rows++] = row;
    } else {
      static_cast<HotlineEntry*>(rejected)[result->cold_rows++] = entries[i];
    }
  }
}

/// EVICT of row ids [count].
void hotline_fragmenter_evict(void* fragmenter, const uint32_t* ids, int64_t count, uint32_t total,
                              uint32_t pinned, HotlineResult* result) {
  Eal& eal = static_cast<Fragmenter*>(fragmenter)->eal;
  const int64_t good = first_bad(ids, count, total);
  *result = good < count ? bad(kRowId, 0, good, ids[good]) : HotlineResult{};
  for (int64_t i = 0; i < good; ++i) {
    if (ids[i] < pinned) {
      ++result->pinned;
      continue;
    }
    const uint32_t key = permute(ids[i]);
    const int64_t first = eal.first_of(key);
    const int way = eal.find(eal.keys(first), key);
    if (way >= 0) {
      eal.keys(first)[way] = kInvalid;
      ++result->eal;
    } else {
      ++result->cold;
    }
  }
  result->lookups = static_cast<uint32_t>(good);
}

/// DUMP: writes the valid entries in slot order and returns their number.
int64_t hotline_fragmenter_dump(void* fragmenter, uint32_t pinned, HotlineEntry* entries) {
  const Eal& eal = static_cast<Fragmenter*>(fragmenter)->eal;
  int64_t count = 0;
  for (int64_t entry = 0; entry < eal.entries(); ++entry) {
    if (!eal.valid(entry)) continue;
    entries[count++] = {eal.row(entry), (pinned + static_cast<uint32_t>(entry)) |
                                            static_cast<uint32_t>(eal.counter(entry)) << 30};
  }
  return count;
}

/// FRAGMENT. Outputs beyond the counts of the result are undefined.
void hotline_fragmenter_fragment(void* fragmenter, const HotlineFragment* job,
                                 HotlineResult* result) {
  Fragmenter& owner = *static_cast<Fragmenter*>(fragmenter);
  try {
    *result = walk_samples(owner, *job, find_slots(owner, *job));
  } catch (const std::exception&) {  // no memory, or no thread to be had
    result->status = kFailed;
  }
}

/// FRAGMENT of the ids of features, which become row ids on the way (`ids`, [lookups], is written;
/// `job->ids` is not used). Returns 0; 1 if an id is out of its table, and 2 if the features are not of
/// the kind for this (jagged, or more than 64 lookups a sample that are not pinned): then the
/// caller takes the way by hotline_ingest. Nothing but outputs has been changed.
int32_t hotline_fragmenter_fragment_features(void* fragmenter, const HotlineFeature* features,
                                             int32_t count, uint32_t* ids,
                                             const HotlineFragment* job, HotlineResult* result) {
  Fragmenter& owner = *static_cast<Fragmenter*>(fragmenter);
  try {
    std::vector<Column> pinned, looked;
    int32_t number = 0;
    for (int32_t f = 0; f < count; ++f) {
      const HotlineFeature& feature = features[f];
      if (feature.lookups < 0 || (feature.required >= 0 && feature.required != feature.lookups)) {
        return 2;
      }
      const bool is_pinned = uint64_t{feature.base} + feature.rows <= job->pinned_rows;
      if (!is_pinned && feature.base < job->pinned_rows) return 2;
      for (int64_t lookup = 0; lookup < feature.lookups; ++lookup) {
        (is_pinned ? pinned : looked)
            .push_back({feature.values + lookup * feature.lookup_stride, feature.sample_stride,
                        feature.rows, feature.base, feature.kind, number++});
      }
    }
    if (looked.size() > kColumns || number != job->lookups_per_sample || job->bags != 0) return 2;
    HotlineFragment with_rows = *job;
    with_rows.ids = ids;
    Slots slots;
    if (!find_slots_of_columns(owner, pinned, looked, with_rows, ids, slots)) return 1;
    *result = walk_samples(owner, with_rows, slots);
  } catch (const std::exception&) {
    result->status = kFailed;
  }
  return 0;
}

/// Copies records between the store and `records`, to the store if `scatter`. `segments` holds the
/// addresses of the segments; with one, `shift` is 32. GATHER with a bad row id copies nothing.
void hotline_move(const uint32_t* ids, int64_t count, uint32_t rows, uint64_t* segments,
                  int32_t shift, int64_t record_bytes, uint8_t* records, int32_t scatter,
                  HotlineResult* result) {
  const int64_t good = first_bad(ids, count, rows);
  *result = good < count ? bad(kRowId, 0, good, ids[good]) : HotlineResult{};
  if (good < count && scatter == 0) return;
  const Store store{segments, shift, record_bytes};
  if (scatter != 0) {
    record_bytes == 64 ? copy<true, 64>(ids, good, store, records)
                       : copy<true, 0>(ids, good, store, records);
  } else {
    record_bytes == 64 ? copy<false, 64>(ids, good, store, records)
                       : copy<false, 0>(ids, good, store, records);
  }
  result->lookups = static_cast<uint32_t>(good);
}

}  // extern "C"
