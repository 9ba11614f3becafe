// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

// Plays a master that breaks one rule of AXI against the harness's memory and prints what it says.
// test_axi_memory.py compiles this and knows what every scenario must give.

#define HOTLINE_BUS_BYTES 8
#define HOTLINE_BURST_BEATS 16
#define HOTLINE_READ_OUTSTANDING 4
#define HOTLINE_WRITE_OUTSTANDING 3

#include "axi_memory.hpp"

#include <functional>
#include <map>

using namespace hotline;

namespace {

constexpr uint64_t kBase = 0x10000;
uint8_t memory_bytes[8128];  // ends inside a page

struct Bench {
  Regions regions;
  Violation violation;
  AxiMemory memory{"kernel", regions, violation};
  MasterOutputs m{};
  uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  uint64_t cycle = 0;
  int read_beats = 0, responses = 0, errors = 0;

  Bench() {
    regions.add({kBase, sizeof memory_bytes, memory_bytes});
    memory.timing = Timing{3, 2, 64, 64, 65536, 65536, {0, 0, 0, 0, 0}, 1, 1, 0};
    memory.reset();
    memory.reseed(0);
    m.ar_size = m.aw_size = 3;
    m.ar_burst = m.aw_burst = 1;
    m.w_strb = 0xFF;
    m.w_data = data;
    m.r_ready = m.b_ready = true;
  }

  void tick() {
    memory.drive(cycle);
    if (memory.out.r_valid && m.r_ready) read_beats++, errors += memory.out.r_resp != 0;
    if (memory.out.b_valid && m.b_ready) responses++, errors += memory.out.b_resp != 0;
    memory.clock(cycle, m);
    cycle++;
  }
  void ticks(int n) {
    while (n--) tick();
  }
  void read(uint64_t address, unsigned beats) {
    m.ar_valid = true;
    m.ar_addr = address;
    m.ar_len = static_cast<uint8_t>(beats - 1);
    tick();
    m.ar_valid = false;
  }
  void address(uint64_t where, unsigned beats) {
    m.aw_valid = true;
    m.aw_addr = where;
    m.aw_len = static_cast<uint8_t>(beats - 1);
    tick();
    m.aw_valid = false;
  }
  void write_data(unsigned beats, unsigned last) {
    m.w_valid = true;
    for (unsigned i = 0; i < beats; i++) {
      m.w_last = i == last;
      tick();
    }
    m.w_valid = m.w_last = false;
  }
  // Makes the memory stall a channel for ever.
  void stall(Channel channel) { memory.timing.stall[channel] = 0xFFFFFFFFu; }
};

const std::map<std::string, std::function<void(Bench&)>> kScenarios = {
    {"legal",
     [](Bench& b) {
       b.read(kBase, 16);
       b.read(kBase + 4096 - 128, 16);
       b.address(kBase + 64, 2);
       b.write_data(2, 1);
       b.m.w_strb = 0x0F;
       b.address(kBase + 128, 1);
       b.write_data(1, 0);
       b.m.w_strb = 0;
       b.address(kBase + 136, 1);
       b.write_data(1, 0);
       b.ticks(100);
       bool good = b.read_beats == 32 && b.responses == 3 && b.errors == 0 &&
                   !std::memcmp(memory_bytes + 64, b.data, 8) && memory_bytes[128] == 1 &&
                   memory_bytes[132] == 0 && memory_bytes[136] == 0;
       if (!good) b.violation.report("bench", b.cycle, "legal traffic went wrong");
     }},
    {"outside",
     [](Bench& b) {
       b.read(kBase + sizeof memory_bytes, 1);
       b.read(kBase - 16, 2);
       b.address(kBase + sizeof memory_bytes - 8, 2);
       b.write_data(2, 1);
       b.ticks(50);
       if (b.errors != 4) b.violation.report("bench", b.cycle, "errors: %d", b.errors);
     }},
    {"latency",
     [](Bench& b) {
       b.read(kBase, 1);
       uint64_t accepted = b.cycle - 1;
       while (b.read_beats == 0 && b.cycle < 100) b.tick();
       if (b.cycle - 1 - accepted != 3) b.violation.report("bench", b.cycle, "read latency");
       b.address(kBase, 1);
       b.write_data(1, 0);
       accepted = b.cycle - 1;
       while (b.responses == 0 && b.cycle < 100) b.tick();
       if (b.cycle - 1 - accepted != 2) b.violation.report("bench", b.cycle, "write latency");
     }},
    {"bandwidth",
     [](Bench& b) {
       b.memory.timing.read_rate = 65536 / 4;
       for (int i = 0; i < 3; i++) b.read(kBase, 16);
       uint64_t begun = b.cycle;
       while (b.read_beats < 48 && b.cycle < 1000) b.tick();
       uint64_t taken = b.cycle - begun;
       if (taken < 185 || taken > 200) {
         b.violation.report("bench", b.cycle, "48 beats in %d", static_cast<int>(taken));
       }
     }},
    {"ar_withdrawn",
     [](Bench& b) {
       b.stall(kAr);
       b.read(kBase, 1);
       b.tick();
     }},
    {"ar_changed",
     [](Bench& b) {
       b.stall(kAr);
       b.read(kBase, 1);
       b.read(kBase + 64, 1);
     }},
    {"aw_changed",
     [](Bench& b) {
       b.stall(kAw);
       b.address(kBase, 1);
       b.address(kBase, 2);
     }},
    {"w_withdrawn",
     [](Bench& b) {
       b.address(kBase, 2);
       b.stall(kW);
       b.write_data(1, 9);
       b.tick();
     }},
    {"w_changed",
     [](Bench& b) {
       b.address(kBase, 2);
       b.stall(kW);
       b.write_data(1, 9);
       b.data[3]++;
       b.write_data(1, 9);
     }},
    {"w_changed_without_strobe",
     [](Bench& b) {
       b.m.w_strb = 0x0F;
       b.address(kBase, 2);
       b.stall(kW);
       b.write_data(1, 9);
       b.data[7]++;  // its lane is not written, so it may change
       b.write_data(1, 9);
     }},
    {"last_early",
     [](Bench& b) {
       b.address(kBase, 4);
       b.write_data(4, 2);
     }},
    {"last_missing",
     [](Bench& b) {
       b.address(kBase, 4);
       b.write_data(4, 9);
     }},
    {"part_of_a_word",
     [](Bench& b) {
       b.m.w_strb = 0x07;
       b.address(kBase, 1);
       b.write_data(1, 0);
     }},
    {"page", [](Bench& b) { b.read(kBase + 4096 - 64, 9); }},
    {"page_write", [](Bench& b) { b.address(kBase + 4096 - 8, 2); }},
    {"too_long", [](Bench& b) { b.read(kBase, 17); }},
    {"misaligned", [](Bench& b) { b.read(kBase + 4, 1); }},
    {"size",
     [](Bench& b) {
       b.m.ar_size = 2;
       b.read(kBase, 1);
     }},
    {"fixed",
     [](Bench& b) {
       b.m.aw_burst = 0;
       b.address(kBase, 1);
     }},
    {"id",
     [](Bench& b) {
       b.m.ar_id = 1;
       b.read(kBase, 1);
     }},
    {"reads_outstanding",
     [](Bench& b) {
       b.memory.timing.answer_reads = 0;
       for (int i = 0; i < 5; i++) b.read(kBase, 1);
     }},
    {"writes_outstanding",
     [](Bench& b) {
       for (int i = 0; i < 4; i++) b.address(kBase, 1);
     }},
    {"reset",
     [](Bench& b) {
       b.m.aw_valid = true;
       b.memory.check_reset(0, b.m);
     }},
};

}  // namespace

int main(int, char** arguments) {
  Bench bench;
  kScenarios.at(arguments[1])(bench);
  std::printf("%s\n", bench.violation.any() ? bench.violation.text().c_str() : "none");
}
