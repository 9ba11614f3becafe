// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

// The memory behind the AXI master of one kernel: host memory with the timing, the stalls and the
// faults that were asked for, and the rules of AXI that the kernel must keep.
//
// Read and write channels are independent. A read burst's first beat may be taken `read_latency`
// cycles after its address was; a write response `write_latency` cycles after the last beat. Bursts
// are served in order (the kernels use one ID). An address outside every region answers DECERR and
// touches nothing, which makes guard bytes unnecessary.

#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace hotline {

constexpr unsigned kBusBytes = HOTLINE_BUS_BYTES;
constexpr unsigned kBurstBeats = HOTLINE_BURST_BEATS;
constexpr unsigned kReadOutstanding = HOTLINE_READ_OUTSTANDING;
constexpr unsigned kWriteOutstanding = HOTLINE_WRITE_OUTSTANDING;
constexpr uint8_t kOkay = 0, kSlvErr = 2, kDecErr = 3;

enum Channel { kAr, kR, kAw, kW, kB, kChannels };

// Settings of one memory; the layout is known to hotline/device/sim.py.
struct Timing {
  uint32_t read_latency;
  uint32_t write_latency;
  uint32_t outstanding_reads;
  uint32_t outstanding_writes;
  uint32_t read_rate;   // beats per 65536 cycles
  uint32_t write_rate;
  uint32_t stall[kChannels];  // probability of a stall in a cycle, in 2**-32
  uint32_t answer_reads;      // 0: read data never come
  uint32_t answer_writes;     // 0: write responses never come
  uint64_t seed;
};

struct Fault {
  uint64_t base, size;
  uint32_t on;     // 1: reads, 2: writes
  uint32_t response;
  int32_t beat;    // number of the beat in its burst, -1: every beat
  int32_t left;    // how often yet, -1: always
};

struct Region {
  uint64_t base, size;
  uint8_t* host;
};

// The memory that both kernels reach, by device address.
class Regions {
 public:
  bool add(Region region) {
    auto at = std::upper_bound(regions_.begin(), regions_.end(), region.base,
                               [](uint64_t base, const Region& r) { return base < r.base; });
    if (at != regions_.end() && region.base + region.size > at->base) return false;
    if (at != regions_.begin() && (at - 1)->base + (at - 1)->size > region.base) return false;
    regions_.insert(at, region);
    return true;
  }

  bool remove(uint64_t base) {
    for (auto at = regions_.begin(); at != regions_.end(); ++at) {
      if (at->base == base) {
        regions_.erase(at);
        return true;
      }
    }
    return false;
  }

  // Host address of a bus word, null outside all regions. The streams of a kernel alternate between
  // a few regions, so a small direct-mapped memory of the last hits would save little over this.
  uint8_t* find(uint64_t address) const {
    auto at = std::upper_bound(regions_.begin(), regions_.end(), address,
                               [](uint64_t base, const Region& r) { return base < r.base; });
    if (at == regions_.begin()) return nullptr;
    --at;
    uint64_t offset = address - at->base;
    return offset < at->size && at->size - offset >= kBusBytes ? at->host + offset : nullptr;
  }

  std::vector<Fault> faults;

  uint8_t fault(uint64_t address, uint32_t on, int32_t beat) {
    for (Fault& f : faults) {
      if ((f.on & on) && f.left != 0 && (f.beat < 0 || f.beat == beat) &&
          address + kBusBytes > f.base && address < f.base + f.size) {
        if (f.left > 0) f.left--;
        return static_cast<uint8_t>(f.response);
      }
    }
    return kOkay;
  }

 private:
  std::vector<Region> regions_;
};

// xorshift64*: each channel has its own, so that stalls of different channels are independent.
class Random {
 public:
  void seed(uint64_t value) {  // splitmix64, so that close seeds give unlike sequences
    value += 0x9E3779B97F4A7C15ull;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
    state_ = (value ^ (value >> 31)) | 1;
  }
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1Dull) >> 32);
  }

 private:
  uint64_t state_ = 1;
};

// First broken rule of a model; later ones are consequences.
class Violation {
 public:
  bool any() const { return !text_.empty(); }
  const std::string& text() const { return text_; }
  void clear() { text_.clear(); }
  __attribute__((format(printf, 4, 5))) void report(const char* kernel, uint64_t cycle,
                                                    const char* format, ...) {
    if (any()) return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    char head[96];
    std::snprintf(head, sizeof head, "%s, cycle %llu: ", kernel,
                  static_cast<unsigned long long>(cycle));
    text_ = std::string(head) + line;
  }

 private:
  std::string text_;
};

// A queue of bursts in flight; never more than a power of two at a time.
template <class T>
class Ring {
 public:
  explicit Ring(size_t depth) {
    size_t size = 1;
    while (size < depth + 1) size *= 2;
    items_.resize(size);
  }
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  T& front() { return items_[head_ & (items_.size() - 1)]; }
  T& at(size_t i) { return items_[(head_ + i) & (items_.size() - 1)]; }
  void push(const T& item) { items_[tail_++ & (items_.size() - 1)] = item; }
  void pop() { head_++; }
  void clear() { head_ = tail_ = 0; }

 private:
  std::vector<T> items_;
  size_t head_ = 0, tail_ = 0;
};

// What a kernel drives in a cycle, sampled after its combinational logic has settled.
struct MasterOutputs {
  bool ar_valid, r_ready, aw_valid, w_valid, w_last, b_ready;
  uint64_t ar_addr, aw_addr;
  uint8_t ar_len, ar_size, ar_burst, aw_len, aw_size, aw_burst, ar_id, aw_id;
  uint64_t w_strb;
  const uint8_t* w_data;
};

// What the memory drives in a cycle.
struct SlaveOutputs {
  bool ar_ready = false, r_valid = false, r_last = false, aw_ready = false, w_ready = false,
       b_valid = false;
  uint8_t r_resp = kOkay, b_resp = kOkay;
  uint8_t r_data[kBusBytes] = {};
};

struct MemoryCounters {
  uint64_t read_bursts = 0, write_bursts = 0, read_beats = 0, write_beats = 0;
  uint64_t read_bytes_most = 0, reads_most = 0, writes_most = 0;
};

class AxiMemory {
 public:
  AxiMemory(const char* name, Regions& regions, Violation& violation)
      : name_(name), regions_(regions), violation_(violation), reads_(1024), writes_(1024) {}

  Timing timing{};
  SlaveOutputs out;
  MemoryCounters counters;

  void reset() {
    reads_.clear();
    writes_.clear();
    data_first_ = 0;
    out = SlaveOutputs{};
    read_credit_ = write_credit_ = kOne;
    last_ = MasterOutputs{};
    held_ = 0;
  }

  // Starts the stall sequences of a job, so that they do not depend on the idle time before it.
  void reseed(uint64_t salt) {
    for (unsigned i = 0; i < kChannels; i++) random_[i].seed(timing.seed * 0x1000193 + salt * 8 + i);
  }

  bool quiet() const { return reads_.empty() && writes_.empty(); }
  size_t reads_in_flight() const { return reads_.size(); }
  size_t writes_in_flight() const { return writes_.size(); }

  // Decides what this cycle shows to the kernel.
  void drive(uint64_t cycle) {
    out.ar_ready = reads_.size() < timing.outstanding_reads && !stalled(kAr);
    if (!out.r_valid) present_read(cycle);
    out.aw_ready = writes_.size() < timing.outstanding_writes && !stalled(kAw);
    if (write_credit_ < kOne) write_credit_ += timing.write_rate;
    out.w_ready = data_first_ < writes_.size() && write_credit_ >= kOne && !stalled(kW);
    if (!out.b_valid && !writes_.empty() && writes_.front().done && timing.answer_writes &&
        cycle >= writes_.front().ready && !stalled(kB)) {
      out.b_valid = true;
      out.b_resp = writes_.front().response;
    }
  }

  // Applies the transfers of this cycle.
  void clock(uint64_t cycle, const MasterOutputs& m) {
    check(cycle, m);
    if (m.ar_valid && out.ar_ready) {
      check_burst(cycle, "AR", m.ar_addr, m.ar_len, m.ar_size, m.ar_burst, m.ar_id);
      reads_.push({m.ar_addr, m.ar_len + 1u, 0, cycle + std::max(timing.read_latency, 1u)});
      counters.read_bursts++;
      if (reads_.size() > counters.reads_most) counters.reads_most = reads_.size();
      if (reads_.size() > kReadOutstanding) {
        violation_.report(name_, cycle, "%zu read bursts in flight, the configuration allows %u",
                          reads_.size(), kReadOutstanding);
      }
    }
    if (out.r_valid && m.r_ready) {
      Read& burst = reads_.front();
      counters.read_beats++;
      out.r_valid = false;
      if (++burst.beat == burst.beats) reads_.pop();
    }
    if (out.w_ready && m.w_valid) take_write(cycle, m);
    if (m.aw_valid && out.aw_ready) {
      check_burst(cycle, "AW", m.aw_addr, m.aw_len, m.aw_size, m.aw_burst, m.aw_id);
      writes_.push({m.aw_addr, m.aw_len + 1u, 0, 0, false, kOkay});
      counters.write_bursts++;
      if (writes_.size() > counters.writes_most) counters.writes_most = writes_.size();
      if (writes_.size() > kWriteOutstanding) {
        violation_.report(name_, cycle, "%zu write bursts in flight, the configuration allows %u",
                          writes_.size(), kWriteOutstanding);
      }
    }
    if (out.b_valid && m.b_ready) {
      out.b_valid = false;
      writes_.pop();
      data_first_--;
    }
  }

  // In reset no request may be shown (after the first edge, since reset is synchronous).
  void check_reset(uint64_t cycle, const MasterOutputs& m) {
    if (m.ar_valid || m.aw_valid || m.w_valid) {
      violation_.report(name_, cycle, "a valid signal is high in reset (AR %d, AW %d, W %d)",
                        m.ar_valid, m.aw_valid, m.w_valid);
    }
  }

 private:
  static constexpr uint32_t kOne = 65536;
  static constexpr unsigned kHeldAr = 1, kHeldAw = 2, kHeldW = 4;

  struct Read {
    uint64_t address;
    uint32_t beats, beat;
    uint64_t ready;
  };
  struct Write {
    uint64_t address;
    uint32_t beats, beat;
    uint64_t ready;
    bool done;
    uint8_t response;
  };

  bool stalled(Channel channel) {
    uint32_t threshold = timing.stall[channel];
    return threshold != 0 && random_[channel].next() < threshold;
  }

  void present_read(uint64_t cycle) {
    if (read_credit_ < kOne) read_credit_ += timing.read_rate;
    if (reads_.empty() || cycle < reads_.front().ready || !timing.answer_reads ||
        read_credit_ < kOne || stalled(kR)) {
      return;
    }
    const Read& burst = reads_.front();
    uint64_t address = burst.address + static_cast<uint64_t>(burst.beat) * kBusBytes;
    const uint8_t* host = regions_.find(address);
    out.r_resp = host ? kOkay : kDecErr;
    if (!regions_.faults.empty() && host) {
      out.r_resp = regions_.fault(address, 1, static_cast<int32_t>(burst.beat));
    }
    if (host && out.r_resp == kOkay) {
      std::memcpy(out.r_data, host, kBusBytes);
    } else {
      std::memset(out.r_data, 0xA5, kBusBytes);  // must not be used
    }
    out.r_last = burst.beat + 1 == burst.beats;
    out.r_valid = true;
    read_credit_ -= kOne;
  }

  void take_write(uint64_t cycle, const MasterOutputs& m) {
    Write& burst = writes_.at(data_first_);
    uint64_t address = burst.address + static_cast<uint64_t>(burst.beat) * kBusBytes;
    uint8_t* host = regions_.find(address);
    uint8_t response = host ? kOkay : kDecErr;
    if (!regions_.faults.empty() && host) {
      response = regions_.fault(address, 2, static_cast<int32_t>(burst.beat));
    }
    if (response != kOkay) {
      if (burst.response == kOkay) burst.response = response;
    } else if (m.w_strb == kAllLanes) {
      std::memcpy(host, m.w_data, kBusBytes);
    } else {
      for (unsigned i = 0; i < kBusBytes; i++) {
        if (m.w_strb >> i & 1) host[i] = m.w_data[i];
      }
    }
    for (unsigned i = 0; i < kBusBytes; i += 4) {
      unsigned word = m.w_strb >> i & 15;
      if (word != 0 && word != 15) {
        violation_.report(name_, cycle, "W strobes %#llx write a part of a 32-bit word",
                          static_cast<unsigned long long>(m.w_strb));
      }
    }
    if (kBusBytes < 64 && m.w_strb & ~kAllLanes) {
      violation_.report(name_, cycle, "W strobes beyond the bus");
    }
    counters.write_beats++;
    write_credit_ -= kOne;
    burst.beat++;
    bool last = burst.beat == burst.beats;
    if (m.w_last != last) {
      violation_.report(name_, cycle, "WLAST is %d at beat %u of a burst of %u at %#llx", m.w_last,
                        burst.beat, burst.beats, static_cast<unsigned long long>(burst.address));
    }
    if (last) {
      burst.done = true;
      burst.ready = cycle + std::max(timing.write_latency, 1u);
      data_first_++;
    }
  }

  void check_burst(uint64_t cycle, const char* channel, uint64_t address, uint8_t length,
                   uint8_t size, uint8_t burst, uint8_t id) {
    unsigned beats = length + 1u;
    auto where = static_cast<unsigned long long>(address);
    if (beats > kBurstBeats) {
      violation_.report(name_, cycle, "%s burst of %u beats at %#llx, the configuration allows %u",
                        channel, beats, where, kBurstBeats);
    }
    if ((1u << size) != kBusBytes) {
      violation_.report(name_, cycle, "%s size is %u bytes at %#llx, the bus has %u", channel,
                        1u << size, where, kBusBytes);
    }
    if (burst != 1) {
      violation_.report(name_, cycle, "%s burst type is %u at %#llx, not INCR", channel, burst,
                        where);
    }
    if (id != 0) violation_.report(name_, cycle, "%s id is %u at %#llx, not 0", channel, id, where);
    if (address % kBusBytes) {
      violation_.report(name_, cycle, "%s address %#llx is not aligned to the bus", channel, where);
    }
    if (address / 4096 != (address + beats * kBusBytes - 1) / 4096) {
      violation_.report(name_, cycle, "%s burst of %u beats at %#llx crosses a 4 KiB boundary",
                        channel, beats, where);
    }
  }

  // VALID must stay, and its payload with it, until READY.
  void check(uint64_t cycle, const MasterOutputs& m) {
    if (held_) {
      if ((held_ & kHeldAr) && (!m.ar_valid || m.ar_addr != last_.ar_addr ||
                                m.ar_len != last_.ar_len || m.ar_size != last_.ar_size)) {
        violation_.report(name_, cycle, "AR was withdrawn or changed before ARREADY");
      }
      if ((held_ & kHeldAw) && (!m.aw_valid || m.aw_addr != last_.aw_addr ||
                                m.aw_len != last_.aw_len || m.aw_size != last_.aw_size)) {
        violation_.report(name_, cycle, "AW was withdrawn or changed before AWREADY");
      }
      if ((held_ & kHeldW) &&
          (!m.w_valid || m.w_last != last_.w_last || m.w_strb != last_.w_strb || changed(m))) {
        violation_.report(name_, cycle, "W was withdrawn or changed before WREADY");
      }
    }
    held_ = (m.ar_valid && !out.ar_ready ? kHeldAr : 0u) |
            (m.aw_valid && !out.aw_ready ? kHeldAw : 0u) |
            (m.w_valid && !out.w_ready ? kHeldW : 0u);
    if (held_) {
      last_ = m;
      if (held_ & kHeldW) std::memcpy(last_data_, m.w_data, kBusBytes);
    }
  }

  // Data of lanes without a strobe carry nothing.
  bool changed(const MasterOutputs& m) const {
    if (m.w_strb == kAllLanes) return std::memcmp(last_data_, m.w_data, kBusBytes) != 0;
    for (unsigned i = 0; i < kBusBytes; i++) {
      if ((m.w_strb >> i & 1) && last_data_[i] != m.w_data[i]) return true;
    }
    return false;
  }

  static constexpr uint64_t kAllLanes = kBusBytes == 64 ? ~0ull : (1ull << (kBusBytes % 64)) - 1;

  const char* name_;
  Regions& regions_;
  Violation& violation_;
  Random random_[kChannels];
  Ring<Read> reads_;
  Ring<Write> writes_;
  size_t data_first_ = 0;  // first write burst whose data are not complete
  uint32_t read_credit_ = kOne, write_credit_ = kOne;
  MasterOutputs last_{};
  uint8_t last_data_[kBusBytes] = {};
  unsigned held_ = 0;
};

}  // namespace hotline
