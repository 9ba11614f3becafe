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
// FRAGMENT has two passes. The first finds the slots; lookups do not depend on one another, so it may
// run on several threads. The second walks over the samples in order and gives positions to cold
// rows; its work is that of the samples and of the cold lookups. What the first has found beyond the
// point where the job ends is not looked at.
//
// From the ids of the features (hotline_fragmenter_fragment_features) the first pass takes blocks of
// samples: all ids become row ids in vectors, which is all that pinned ones need, then each column
// that must be looked up is permuted and prefetched, then compared.

#include "ingest.hpp"
#include "workers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif
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
  void* workers;  ///< of hotline_workers_new, or null: one thread
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

/// A lookup of a row that is not in the EAL.
struct Cold {
  uint32_t lookup, row;
};

/// Greatest of the row ids, 0 if there are none.
HOTLINE_CLONES
uint32_t greatest_of(const uint32_t* ids, int64_t count) {
  uint32_t greatest = 0;
  for (int64_t i = 0; i < count; ++i) greatest = std::max(greatest, ids[i]);
  return greatest;
}

/// The first row id that is not below the total, or `count`.
int64_t first_bad(const uint32_t* ids, int64_t count, uint32_t total) {
  if (greatest_of(ids, count) < total) return count;
  return std::find_if(ids, ids + count, [=](uint32_t row) { return row >= total; }) - ids;
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
                                                const uint32_t* wanted, const uint32_t* rows,
                                                const uint32_t* where, int64_t count,
                                                uint32_t pinned, uint32_t begin, uint32_t* out,
                                                Cold* cold) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t first = (wanted[i] & set_mask) * 16;
    const int way = find16(keys + first, wanted[i]);
    out[where[i]] = pinned + first + static_cast<uint32_t>(way);
    cold[found] = {begin + where[i], rows[i]};
    found += way < 0;
  }
  return found;
}

bool has_avx2() {
  static const bool found =
      __builtin_cpu_supports("avx2") != 0 && std::getenv("HOTLINE_PORTABLE") == nullptr;
  return found;
}
#endif

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// Memory for `count` numbers; a large one in large pages, since it is read at random.
std::unique_ptr<uint32_t[], Free> aligned_words(int64_t count) {
  constexpr size_t kLargePage = size_t{2} << 20;
  const size_t bytes = static_cast<size_t>(count) * 4;
  const size_t alignment = bytes >= kLargePage ? kLargePage : 64;
  const size_t size = (bytes + alignment - 1) / alignment * alignment;
  std::unique_ptr<uint32_t[], Free> words(
      static_cast<uint32_t*>(std::aligned_alloc(alignment, size)));
  if (words == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (size >= kLargePage) madvise(words.get(), size, MADV_HUGEPAGE);
#endif
  return words;
}

class Eal {
 public:
  Eal(int64_t sets, int ways)
      : ways_(ways), entries_(sets * ways),
        mask_(static_cast<uint32_t>(sets - 1)), counters_(static_cast<size_t>(sets * ways)) {
    while ((int64_t{1} << set_bits_) < sets) ++set_bits_;
    keys_ = aligned_words(entries_);
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

  /// Slots of the lookups `start` ... `end` - 1, to `out` by number; the cold ones, in order, to
  /// `cold`, which has room for all and one more.
  Found slots(const uint32_t* ids, int64_t start, int64_t end, uint32_t total, uint32_t pinned,
              uint32_t* out, Cold* cold) const {
    uint32_t rows[kChunk], wanted[kChunk], where[kChunk];
    Found result{end, 0, 0};
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
      if (greatest >= total && result.bad == end) {
        result.bad = begin + first_bad(part, size, total);
      }
      result.pinned += size - looked;
      permute_all(rows, wanted, looked);
      for (int64_t i = 0; i < looked; ++i) prefetch(wanted[i]);
#if HOTLINE_AVX2
      if (ways_ == 16 && has_avx2()) {
        result.cold += slots16(keys_.get(), mask_, wanted, rows, where, looked, pinned,
                               static_cast<uint32_t>(begin), out + begin, cold + result.cold);
        continue;
      }
#endif
      for (int64_t i = 0; i < looked; ++i) {
        const int64_t first = first_of(wanted[i]);
        const int way = find_portable(keys_.get() + first, ways_, wanted[i]);
        out[begin + where[i]] = pinned + static_cast<uint32_t>(first + way);
        cold[result.cold] = {static_cast<uint32_t>(begin + where[i]), rows[i]};
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
  int64_t entries_;
  uint32_t mask_;
  std::unique_ptr<uint32_t[], Free> keys_;
  std::vector<uint8_t> counters_;
};

/// Positions of the cold rows of a job, in a hash table that is as large as the job needs. Positions
/// are numbered on from job to job: a place of a job before holds a number below those of this one,
/// so that no job begins with clearing.
class Tracker {
 public:
  explicit Tracker(int64_t rows_max)
      : rows_max_(rows_max), table_(static_cast<size_t>(size_for(rows_max))) {}

  /// Begins a job with at most `lookups` cold lookups.
  void begin(int64_t lookups) {
    const int64_t size = size_for(std::min(lookups, rows_max_));
    mask_ = static_cast<uint32_t>(size - 1);
    shift_ = 32 - __builtin_ctzll(static_cast<uint64_t>(size));
    base_ += added_;
    added_ = 0;
    if (base_ + static_cast<uint64_t>(rows_max_) > 0xffffffff) {
      std::fill(table_.begin(), table_.end(), Place{});
      base_ = 1;
    }
  }

  /// Position of a row; that of the next new one if it is new, with its place in `place`.
  uint32_t find(uint32_t row, uint32_t& place) const {
    for (place = home(row);; place = (place + 1) & mask_) {
      const Place& found = table_[place];
      const uint32_t position = found.number - static_cast<uint32_t>(base_);
      if (position >= added_) return added_;
      if (found.row == row) return position;
    }
  }

  void prefetch(uint32_t row) const { __builtin_prefetch(table_.data() + home(row), 1); }

  /// Gives the next position to a row that `find` has not found.
  void put(uint32_t place, uint32_t row) {
    table_[place] = {row, static_cast<uint32_t>(base_) + added_++};
  }

 private:
  struct Place {
    uint32_t row = 0, number = 0;
  };

  static int64_t size_for(int64_t rows) {
    int64_t size = 64;
    while (size < 2 * rows) size *= 2;
    return size;
  }

  uint32_t home(uint32_t row) const { return row * 0x9E3779B1u >> shift_; }

  int64_t rows_max_;
  std::vector<Place> table_;
  uint32_t mask_ = 63;
  int shift_ = 26;
  uint64_t base_ = 1;
  uint32_t added_ = 0;
};

struct Fragmenter {
  Fragmenter(int64_t sets, int ways, int64_t cold_rows_max) : eal(sets, ways), tracker(cold_rows_max) {}
  Eal eal;
  Tracker tracker;
  std::unique_ptr<Cold[]> cold;  // scratch of FRAGMENT
  int64_t cold_room = 0;

  /// Scratch for this many cold lookups; contents are undefined.
  Cold* scratch(int64_t count) {
    if (count > cold_room) {
      cold.reset();
      cold_room = 0;
      cold.reset(new Cold[static_cast<size_t>(count)]);
      cold_room = count;
    }
    return cold.get();
  }
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

constexpr int64_t kBlock = 64;    // samples
constexpr int64_t kColumns = 64;  // columns that are looked up, at most: bits of a word

/// The ids of a mini-batch, if every sample has the same number of them, and how they are stored.
struct Columns {
  std::vector<Column> all;
  std::vector<Column> looked;      // those whose tables are not pinned
  std::vector<uint64_t> last;      // [all], last id of each table, and first row id, as vectors
  std::vector<uint32_t> base;
  bool matrix = false;  // the ids of a sample lie side by side

  int64_t width() const { return static_cast<int64_t>(all.size()); }

  /// To be called when `all` is complete.
  void finish(uint32_t pinned_rows) {
    matrix = !all.empty();
    for (const Column& column : all) {
      const int64_t size = column.kind == kInt32 || column.kind == kUint32 ? 4 : 8;
      const Column& first = all.front();
      matrix &= column.kind == first.kind && column.stride == first.stride &&
                column.values == first.values + column.number * size;
      if (column.base >= pinned_rows) looked.push_back(column);
      last.push_back(column.rows - 1);
      base.push_back(column.base);
    }
  }
};

/// Ids to row ids. Returns whether all are in the table; a negative one is not.
template <typename T>
inline bool rebase(const char* values, int64_t stride, int64_t count, const Column& column,
                   uint32_t* out) {
  const uint64_t last = column.rows - 1;
  const uint32_t base = column.base;
  uint64_t signs = 0;  // of id and last - id: neither may be negative
  if (stride == sizeof(T)) {
    const T* ids = reinterpret_cast<const T*>(values);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t id = static_cast<uint64_t>(int64_t{ids[i]});
      signs |= id | (last - id);
      out[i] = base + static_cast<uint32_t>(id);
    }
    return signs >> 63 == 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t id = static_cast<uint64_t>(int64_t{*reinterpret_cast<const T*>(values + i * stride)});
    signs |= id | (last - id);
    out[i] = base + static_cast<uint32_t>(id);
  }
  return signs >> 63 == 0;
}

HOTLINE_CLONES
bool rebase_column(const Column& column, int64_t first, int64_t count, uint32_t* out) {
  const char* values = column.values + first * column.stride;
  switch (column.kind) {
    case kInt32: return rebase<int32_t>(values, column.stride, count, column, out);
    case kUint32: return rebase<uint32_t>(values, column.stride, count, column, out);
    default: return rebase<int64_t>(values, column.stride, count, column, out);
  }
}

template <typename T>
inline bool rebase_matrix(const char* values, int64_t stride, int64_t count, int64_t width,
                          const uint64_t* last, const uint32_t* base, uint32_t* out) {
  uint64_t signs = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T* ids = reinterpret_cast<const T*>(values + i * stride);
    for (int64_t f = 0; f < width; ++f) {
      const uint64_t id = static_cast<uint64_t>(int64_t{ids[f]});
      signs |= id | (last[f] - id);
      out[f] = base[f] + static_cast<uint32_t>(id);
    }
    out += width;
  }
  return signs >> 63 == 0;
}

HOTLINE_CLONES
bool rebase_samples(const Columns& columns, int64_t first, int64_t count, uint32_t* out) {
  const Column& column = columns.all.front();
  const char* values = column.values + first * column.stride;
  const uint64_t* last = columns.last.data();
  const int64_t width = columns.width();
  const uint32_t* base = columns.base.data();
  switch (column.kind) {
    case kInt32: return rebase_matrix<int32_t>(values, column.stride, count, width, last, base, out);
    case kUint32:
      return rebase_matrix<uint32_t>(values, column.stride, count, width, last, base, out);
    default: return rebase_matrix<int64_t>(values, column.stride, count, width, last, base, out);
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

HotlineResult bad(Reason reason, int64_t sample, int64_t lookup, uint32_t value) {
  HotlineResult result{};
  result.status = kBadIndex;
  result.reason = reason;
  result.error_sample = static_cast<uint32_t>(sample);
  result.error_lookup = static_cast<uint32_t>(lookup);
  result.error_value = value;
  return result;
}

/// What the first pass of FRAGMENT gives.
struct Slots {
  int64_t bad;     // the first lookup with a bad row id, or the number of lookups
  int64_t pinned;  // pinned lookups
  int64_t cold;    // cold ones; they are in Fragmenter::cold
  int64_t pinned_per_sample;  // if it is the same for all, else -1
};

/// Runs `find(first, end, cold)`, which returns an Eal::Found, on parts of `count` elements of `width`
/// lookups, and joins what they find. Parts begin at multiples of `unit`.
template <typename Find>
Slots in_parts(Fragmenter& owner, Workers* workers, int64_t count, int64_t width, int64_t unit,
               const Find& find) {
  constexpr int64_t kLeast = 1 << 14;  // lookups; below, a part costs more than it saves
  const int64_t threads = workers == nullptr ? 1 : workers->threads();
  // More parts than threads, so that one that is held up does not hold up the job.
  const int64_t parts = threads == 1 ? 1 : std::max<int64_t>(1, std::min<int64_t>(
                                               4 * threads, count * width / kLeast));
  const int64_t size = (count / parts + unit) / unit * unit;
  Cold* const cold = owner.scratch(count * width + parts);
  std::vector<Eal::Found> found(static_cast<size_t>(parts));
  auto begin_of = [&](int64_t n) { return std::min(count, size * n); };
  auto cold_of = [&](int64_t n) { return cold + begin_of(n) * width + n; };
  auto part = [&](int64_t n) {
    found[static_cast<size_t>(n)] = find(begin_of(n), begin_of(n + 1), cold_of(n));
  };
  if (parts == 1) {
    part(0);
  } else {
    workers->run(parts, part);
  }
  Slots result{count * width, 0, 0, -1};
  for (int64_t n = 0; n < parts; ++n) {
    const Eal::Found& one = found[static_cast<size_t>(n)];
    result.bad = std::min(result.bad, one.bad);
    if (n > 0) std::copy(cold_of(n), cold_of(n) + one.cold, cold + result.cold);
    result.cold += one.cold;
    result.pinned += one.pinned;
  }
  return result;
}

Slots find_slots(Fragmenter& owner, const HotlineFragment& job) {
  auto* workers = static_cast<Workers*>(job.workers);
  return in_parts(owner, workers, job.lookups, 1, 1, [&](int64_t first, int64_t end, Cold* cold) {
    Eal::Found found =
        owner.eal.slots(job.ids, first, end, job.total_rows, job.pinned_rows, job.indices, cold);
    if (found.bad == end) found.bad = job.lookups;
    return found;
  });
}

/// Slots of the samples `begin` ... `end` - 1 from the ids of features. Row ids go to `ids`, if it is
/// not null. `bad` of the result is 0 if an id is out of its table.
Eal::Found slots_of_samples(const Eal& eal, const Columns& columns, const HotlineFragment& job,
                            int64_t begin, int64_t end, uint32_t* ids, Cold* found_cold) {
  const int64_t width = columns.width();
  Eal::Found result{job.lookups, 0, 0};
  uint32_t rows[kColumns][kBlock], wanted[kColumns][kBlock];
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t count = std::min(kBlock, end - first);
    uint32_t* const out = job.indices + first * width;
    bool good = true;
    if (columns.matrix) {
      good = rebase_samples(columns, first, count, out);
    } else {
      uint32_t column_rows[kBlock];
      for (const Column& column : columns.all) {
        good &= rebase_column(column, first, count, column_rows);
        for (int64_t i = 0; i < count; ++i) out[i * width + column.number] = column_rows[i];
      }
    }
    if (!good) return {0, 0, 0};
    if (ids != nullptr) std::copy(out, out + count * width, ids + first * width);
    for (size_t c = 0; c < columns.looked.size(); ++c) {
      const uint32_t* from = out + columns.looked[c].number;
      for (int64_t i = 0; i < count; ++i) rows[c][i] = from[i * width];
      permute_all(rows[c], wanted[c], count);
      for (int64_t i = 0; i < count; ++i) eal.prefetch(wanted[c][i]);
    }
    uint64_t cold[kBlock] = {};
    for (size_t c = 0; c < columns.looked.size(); ++c) {
      uint32_t* const to = out + columns.looked[c].number;
#if HOTLINE_AVX2
      if (eal.ways() == 16 && has_avx2()) {
        column16(eal.data(), eal.mask(), wanted[c], count, job.pinned_rows, uint64_t{1} << c, width,
                 to, cold);
        continue;
      }
#endif
      for (int64_t i = 0; i < count; ++i) {
        const int64_t place = eal.first_of(wanted[c][i]);
        const int way = find_portable(eal.data() + place, eal.ways(), wanted[c][i]);
        to[i * width] = job.pinned_rows + static_cast<uint32_t>(place + way);
        cold[i] |= static_cast<uint64_t>(way < 0) << c;
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      for (uint64_t bits = cold[i]; bits != 0; bits &= bits - 1) {
        const int c = __builtin_ctzll(bits);
        const int64_t lookup = (first + i) * width + columns.looked[static_cast<size_t>(c)].number;
        found_cold[result.cold++] = {static_cast<uint32_t>(lookup), rows[c][i]};
      }
    }
  }
  return result;
}

/// The first pass from the ids of features. Returns false if an id is out of its table.
bool find_slots_of_columns(Fragmenter& owner, const Columns& columns, const HotlineFragment& job,
                           uint32_t* ids, Slots& result) {
  const int64_t width = columns.width();
  const int64_t pinned = width - static_cast<int64_t>(columns.looked.size());
  auto* workers = static_cast<Workers*>(job.workers);
  if (width == 0) {
    result = {0, 0, 0, 0};
    return true;
  }
  result = in_parts(owner, workers, job.samples, width, kBlock,
                    [&](int64_t first, int64_t end, Cold* cold) {
                      return slots_of_samples(owner.eal, columns, job, first, end, ids, cold);
                    });
  result.pinned = pinned * job.samples;
  result.pinned_per_sample = pinned;
  return result.bad == job.lookups;
}

/// The second pass: samples in order.
HotlineResult walk_samples(Fragmenter& owner, const HotlineFragment& job, const Slots& slots) {
  HotlineResult result{};
  Tracker& tracker = owner.tracker;
  tracker.begin(slots.cold);
  const int64_t last_entry = job.samples * job.bags;
  if (job.bags != 0 &&
      (job.offsets[0] != 0 || (last_entry == 0 && job.offsets[0] != job.lookups))) {
    return bad(kOffset, 0, 0, job.offsets[0]);
  }
  constexpr int64_t kAhead = 12;
  const Cold* const all = owner.scratch(slots.cold);
  const Cold* next = all;  // the next cold lookup
  const Cold* const end = all + slots.cold;
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
    const Cold* const begin = next;
    const int64_t stop = std::min(last, slots.bad);
    uint32_t added = cold;
    for (; next != end && next->lookup < stop; ++next) {
      if (end - next > kAhead) tracker.prefetch(next[kAhead].row);
      uint32_t place;
      const uint32_t position = tracker.find(next->row, place);
      if (position == added) {
        if (added == job.cold_rows_max) {
          result.status = kColdOverflow;
          break;
        }
        tracker.put(place, next->row);
        job.cold[added++] = next->row;
      }
      job.indices[next->lookup] = job.cold_base + position;
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
  result.cold = static_cast<uint32_t>(next - all);
  result.pinned = static_cast<uint32_t>(slots.pinned);
  if (slots.pinned_per_sample >= 0) {
    result.pinned = static_cast<uint32_t>(slots.pinned_per_sample * sample);
  } else if (lookups < job.lookups) {
    result.pinned = static_cast<uint32_t>(std::count_if(
        job.ids, job.ids + lookups, [&](uint32_t row) { return row < job.pinned_rows; }));
  }
  result.eal = result.lookups - result.pinned - result.cold;
  return result;
}

/// Where the records are; `shift` is 32 if there is one segment.
struct Store {
  const uint64_t* segments;
  int32_t shift;
  int64_t record_bytes;
};

/// Copies records to the store or from it; kBytes: their size, 0: any.
template <bool kScatter, bool kSegments, int64_t kBytes>
void copy(const uint32_t* ids, int64_t count, const Store& store, uint8_t* records) {
  constexpr int64_t kAhead = 32;
  const int64_t bytes = kBytes != 0 ? kBytes : store.record_bytes;
  const uint32_t low = kSegments ? (uint32_t{1} << store.shift) - 1 : 0xffffffff;
  uint8_t* const base = reinterpret_cast<uint8_t*>(store.segments[0]);
  auto record = [&](uint32_t row) {
    uint8_t* const segment =
        kSegments ? reinterpret_cast<uint8_t*>(store.segments[row >> store.shift]) : base;
    return segment + static_cast<int64_t>(row & low) * bytes;
  };
  auto move = [&](int64_t i) {
    uint8_t* there = record(ids[i]);
    uint8_t* here = records + i * bytes;
    std::memcpy(kScatter ? there : here, kScatter ? here : there, static_cast<size_t>(bytes));
  };
  int64_t i = 0;
  for (; i + kAhead < count; ++i) {
    const uint8_t* later = record(ids[i + kAhead]);
    for (int64_t byte = 0; byte < bytes; byte += 64) {
      __builtin_prefetch(later + byte, kScatter ? 1 : 0);
    }
    move(i);
  }
  for (; i < count; ++i) move(i);
}

template <bool kScatter>
void copy(const uint32_t* ids, int64_t count, const Store& store, uint8_t* records) {
  const bool small = store.record_bytes == 64;
  if (store.shift < 32) {
    small ? copy<kScatter, true, 64>(ids, count, store, records)
          : copy<kScatter, true, 0>(ids, count, store, records);
  } else {
    small ? copy<kScatter, false, 64>(ids, count, store, records)
          : copy<kScatter, false, 0>(ids, count, store, records);
  }
}

}  // namespace

extern "C" {

/// Threads for large jobs of one kernel, or null if there is no memory for them.
void* hotline_workers_new(int32_t threads) {
  try {
    return new Workers(threads);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void hotline_workers_free(void* workers) { delete static_cast<Workers*>(workers); }

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

/// FRAGMENT of the ids of features, which become row ids on the way: `job->ids` and `job->offsets` are
/// outputs here. If all features have fixed numbers of lookups, `ids` may be null, and `offsets`
/// must be. Returns 0, or 1 if an id is out of its table or lengths and offsets are wrong: then
/// hotline_ingest says which, and nothing but outputs has been changed.
int32_t hotline_fragmenter_fragment_features(void* fragmenter, const HotlineFeature* features,
                                             int32_t count, const HotlineFragment* job,
                                             HotlineResult* result) {
  Fragmenter& owner = *static_cast<Fragmenter*>(fragmenter);
  try {
    Columns columns;
    bool fixed = job->bags == 0;
    for (int32_t f = 0; f < count && fixed; ++f) {
      const HotlineFeature& feature = features[f];
      fixed = feature.lookups >= 0 && (feature.required < 0 || feature.required == feature.lookups);
      // A table is pinned as a whole, or the first pass must look at every row id.
      fixed &= feature.base >= job->pinned_rows ||
               uint64_t{feature.base} + feature.rows <= job->pinned_rows;
      for (int64_t lookup = 0; lookup < feature.lookups && fixed; ++lookup) {
        columns.all.push_back({feature.values + lookup * feature.lookup_stride,
                               feature.sample_stride, feature.rows, feature.base, feature.kind,
                               static_cast<int32_t>(columns.all.size())});
      }
    }
    columns.finish(job->pinned_rows);
    HotlineFragment with_rows = *job;
    auto* ids = const_cast<uint32_t*>(job->ids);
    if (fixed && columns.looked.size() <= kColumns) {
      Slots slots;
      if (!find_slots_of_columns(owner, columns, *job, ids, slots)) return 1;
      *result = walk_samples(owner, with_rows, slots);
      return 0;
    }
    std::vector<uint32_t> rows;
    if (ids == nullptr) {
      rows.resize(static_cast<size_t>(job->lookups));
      with_rows.ids = ids = rows.data();
    }
    std::vector<int64_t> cursors(static_cast<size_t>(count) + 1);
    HotlineIngestError error;
    const int64_t written =
        hotline_ingest(features, count, job->samples, ids, const_cast<uint32_t*>(job->offsets),
                       cursors.data(), &error);
    if (written != job->lookups) return 1;
    *result = walk_samples(owner, with_rows, find_slots(owner, with_rows));
  } catch (const std::exception&) {
    result->status = kFailed;
  }
  return 0;
}

/// Copies records between the store and `records`, to the store if `scatter`. `segments` holds the
/// addresses of the segments; with one, `shift` is 32. GATHER with a bad row id copies nothing.
/// Workers, if not null, share a large GATHER.
void hotline_move(const uint32_t* ids, int64_t count, uint32_t rows, uint64_t* segments,
                  int32_t shift, int64_t record_bytes, uint8_t* records, int32_t scatter,
                  void* workers, HotlineResult* result) {
  const int64_t good = first_bad(ids, count, rows);
  *result = good < count ? bad(kRowId, 0, good, ids[good]) : HotlineResult{};
  if (good < count && scatter == 0) return;
  const Store store{segments, shift, record_bytes};
  constexpr int64_t kPart = 1 << 18;  // bytes of a thread's share
  if (scatter != 0) {
    copy<true>(ids, good, store, records);  // one thread: the last of duplicates wins
  } else if (workers == nullptr) {
    copy<false>(ids, good, store, records);
  } else {
    const int64_t size = std::max<int64_t>(1, kPart / record_bytes);
    static_cast<Workers*>(workers)->run((good + size - 1) / size, [&](int64_t n) {
      const int64_t first = n * size;
      copy<false>(ids + first, std::min(size, good - first), store, records + first * record_bytes);
    });
  }
  result->lookups = static_cast<uint32_t>(good);
}

}  // extern "C"
