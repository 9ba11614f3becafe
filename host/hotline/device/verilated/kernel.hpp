// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

// One kernel: its Verilated model, the memory at its AXI master, the host at its registers.
//
// A clock cycle is: drive the inputs and settle with the clock low; sample the handshakes; rise the
// clock; update memory and host. `ap_clk` is only ever high inside `cycle`.

#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "axi_memory.hpp"
#include "verilated.h"
#if VM_COVERAGE
#include "verilated_cov.h"
#endif
#if HOTLINE_TRACE == 1
#include "verilated_vcd_c.h"
using TraceFile = VerilatedVcdC;
#elif HOTLINE_TRACE == 2
#include "verilated_fst_c.h"
using TraceFile = VerilatedFstC;
#endif

namespace hotline {

struct KernelCounters {
  uint64_t cycles = 0;           // cycles clocked
  uint64_t starts = 0;           // writes of CONTROL.start
  uint64_t resumes = 0;          // writes of CONTROL.resume
  uint64_t interrupts = 0;       // rising edges of the interrupt
  uint64_t first_start = 0;      // cycle of the first start since the counters were cleared
  uint64_t last_interrupt = 0;   // cycle of the last rising edge
};

// What the harness needs of a kernel, whatever its model's class.
class KernelBase {
 public:
  virtual ~KernelBase() = default;
  virtual void reset(uint64_t cycle) = 0;
  virtual void cycle(uint64_t cycle) = 0;
  virtual bool trace(const char* path, uint64_t begin, uint64_t end) = 0;
  virtual void coverage(const char* path) = 0;

  bool busy() const { return counters.starts != counters.resumes; }
  // Whether clocking it changes nothing but its cycle counter.
  bool idle() const { return quiet_cycles_ > kQuietCycles; }
  bool access_done() const { return !access_.active; }
  uint32_t access_data() const { return access_.data; }

  void begin_access(bool write, uint32_t address, uint32_t data) {
    access_ = Access{true, write, address, data, false, false, 0};
    quiet_cycles_ = 0;
  }

  AxiMemory memory;
  KernelCounters counters;
  bool interrupt = false;

 protected:
  KernelBase(const char* name, Regions& regions, Violation& violation)
      : memory(name, regions, violation), name_(name), violation_(violation) {}

  struct Access {
    bool active, write;
    uint32_t address, data;
    bool address_taken, data_taken;
    uint32_t waited;
  };
  // Far more than the blocks behind a job's completion need to come to rest.
  static constexpr uint32_t kQuietCycles = 256;
  static constexpr uint32_t kAccessCycles = 10000;

  const char* name_;
  Violation& violation_;
  Access access_{};
  uint32_t quiet_cycles_ = 0;
};

// Set while a model is evaluated, so that a failing assertion finds its kernel.
struct Evaluation {
  const char* name;
  uint64_t cycle;
  Violation* violation;
};
extern thread_local Evaluation* evaluation;

template <class Top>
class Kernel : public KernelBase {
 public:
  Kernel(const char* name, Regions& regions, Violation& violation, uint64_t seed, bool randomise)
      : KernelBase(name, regions, violation) {
    // `$value$plusargs` of the model: one, for the mutation tests.
    if (const char* plusarg = std::getenv("HOTLINE_PLUSARGS")) {
      const char* arguments[] = {name, plusarg};
      context_.commandArgs(2, arguments);
    }
    context_.randReset(randomise ? 2 : 0);
    context_.randSeed(static_cast<int>(seed % 0x7FFFFFFF) + 1);
#if HOTLINE_TRACE
    context_.traceEverOn(true);
#endif
    top_ = std::make_unique<Top>(&context_, name);
    top_->ap_clk = 0;
    top_->ap_rst_n = 0;  // reset is active from time 0
    inputs_off();
    evaluate(0);
  }

  ~Kernel() override {
#if HOTLINE_TRACE
    if (trace_) trace_->close();
#endif
    top_->final();
  }

  void reset(uint64_t cycle) override {
    access_ = Access{};
    memory.reset();
    memory.reseed(0);
    batches_ = 0;
    counters.starts = counters.resumes = 0;
    interrupt = false;
    quiet_cycles_ = 0;
    inputs_off();
    top_->ap_rst_n = 0;
    for (int i = 0; i < 8; i++) {
      low(cycle);
      if (i > 0) memory.check_reset(cycle, sample());
      high(cycle);
    }
    top_->ap_rst_n = 1;
  }

  void cycle(uint64_t cycle) override {
    memory.drive(cycle);
    const SlaveOutputs& s = memory.out;
    Top& t = *top_;
    t.m_axi_gmem_arready = s.ar_ready;
    t.m_axi_gmem_rvalid = s.r_valid;
    t.m_axi_gmem_rlast = s.r_last;
    t.m_axi_gmem_rresp = s.r_resp;
    if (s.r_valid) std::memcpy(&t.m_axi_gmem_rdata, s.r_data, kBusBytes);
    t.m_axi_gmem_awready = s.aw_ready;
    t.m_axi_gmem_wready = s.w_ready;
    t.m_axi_gmem_bvalid = s.b_valid;
    t.m_axi_gmem_bresp = s.b_resp;
    drive_access();
    low(cycle);

    MasterOutputs m = sample();
    Access before = access_;
    if (access_.active) sample_access(cycle);
    high(cycle);

    // The memory takes the bus word from the model, which the rising edge may have changed.
    m.w_data = w_data_;
    memory.clock(cycle, m);
    counters.cycles++;
    bool line = t.__SYM__interrupt;  // Verilator marks a word that some compilers reserve
    if (line && !interrupt) {
      counters.interrupts++;
      counters.last_interrupt = cycle;
      if (counters.starts == counters.resumes + 1 && memory.writes_in_flight() != 0) {
        violation_.report(name_, cycle, "done rose with %zu write bursts not answered",
                          memory.writes_in_flight());
      }
    }
    interrupt = line;
    bool active = busy() || before.active || !memory.quiet();
    quiet_cycles_ = active ? 0 : quiet_cycles_ + 1;
  }

  void coverage(const char* path) override {
#if VM_COVERAGE
    context_.coveragep()->write(path);
#else
    (void)path;
#endif
  }

  bool trace(const char* path, uint64_t begin, uint64_t end) override {
#if HOTLINE_TRACE
    trace_ = std::make_unique<TraceFile>();
    top_->trace(trace_.get(), 99);
    trace_->open(path);
    trace_begin_ = begin;
    trace_end_ = end;
    return trace_->isOpen();
#else
    (void)path, (void)begin, (void)end;
    return false;
#endif
  }

 private:
  void evaluate(uint64_t cycle) {
    Evaluation here{name_, cycle, &violation_};
    evaluation = &here;
    context_.time(cycle);  // for messages
    top_->eval();
    evaluation = nullptr;
  }

  void low(uint64_t cycle) {
    top_->ap_clk = 0;
    evaluate(cycle);
    dump(cycle, 0);
  }

  void high(uint64_t cycle) {
    top_->ap_clk = 1;
    evaluate(cycle);
    dump(cycle, 1);
  }

  void dump(uint64_t cycle, unsigned phase) {
#if HOTLINE_TRACE
    if (trace_ && cycle >= trace_begin_ && cycle < trace_end_) trace_->dump(cycle * 2 + phase);
#else
    (void)cycle, (void)phase;
#endif
  }

  MasterOutputs sample() {
    Top& t = *top_;
    MasterOutputs m;
    m.ar_valid = t.m_axi_gmem_arvalid;
    m.ar_addr = t.m_axi_gmem_araddr;
    m.ar_len = t.m_axi_gmem_arlen;
    m.ar_size = t.m_axi_gmem_arsize;
    m.ar_burst = t.m_axi_gmem_arburst;
    m.ar_id = t.m_axi_gmem_arid;
    m.r_ready = t.m_axi_gmem_rready;
    m.aw_valid = t.m_axi_gmem_awvalid;
    m.aw_addr = t.m_axi_gmem_awaddr;
    m.aw_len = t.m_axi_gmem_awlen;
    m.aw_size = t.m_axi_gmem_awsize;
    m.aw_burst = t.m_axi_gmem_awburst;
    m.aw_id = t.m_axi_gmem_awid;
    m.w_valid = t.m_axi_gmem_wvalid;
    m.w_last = t.m_axi_gmem_wlast;
    m.w_strb = t.m_axi_gmem_wstrb;
    m.w_data = w_data_;
    m.b_ready = t.m_axi_gmem_bready;
    if (m.w_valid) std::memcpy(w_data_, &t.m_axi_gmem_wdata, kBusBytes);
    return m;
  }

  void inputs_off() {
    Top& t = *top_;
    t.m_axi_gmem_arready = 0;
    t.m_axi_gmem_rvalid = 0;
    t.m_axi_gmem_rlast = 0;
    t.m_axi_gmem_rresp = 0;
    t.m_axi_gmem_rid = 0;
    t.m_axi_gmem_awready = 0;
    t.m_axi_gmem_wready = 0;
    t.m_axi_gmem_bvalid = 0;
    t.m_axi_gmem_bresp = 0;
    t.m_axi_gmem_bid = 0;
    t.s_axi_control_awvalid = 0;
    t.s_axi_control_wvalid = 0;
    t.s_axi_control_bready = 0;
    t.s_axi_control_arvalid = 0;
    t.s_axi_control_rready = 0;
  }

  // Register accesses run one at a time: AW and W together, then B; or AR, then R.
  void drive_access() {
    Top& t = *top_;
    const Access& a = access_;
    bool write = a.active && a.write, read = a.active && !a.write;
    t.s_axi_control_awvalid = write && !a.address_taken;
    t.s_axi_control_wvalid = write && !a.data_taken;
    t.s_axi_control_bready = write;
    t.s_axi_control_arvalid = read && !a.address_taken;
    t.s_axi_control_rready = read;
    if (write) {
      t.s_axi_control_awaddr = a.address;
      t.s_axi_control_wdata = a.data;
      t.s_axi_control_wstrb = 0xF;
    } else if (read) {
      t.s_axi_control_araddr = a.address;
    }
  }

  void sample_access(uint64_t cycle) {
    Top& t = *top_;
    Access& a = access_;
    uint8_t response = 0;
    if (a.write) {
      bool answered = t.s_axi_control_bvalid && a.address_taken && a.data_taken;
      bool taken = a.address_taken && a.data_taken;
      if (t.s_axi_control_awready) a.address_taken = true;
      if (t.s_axi_control_wready) a.data_taken = true;
      if (!taken && a.address_taken && a.data_taken && a.address == 0) {
        if (a.data & 1) started(cycle);
        if (a.data & 16) counters.resumes++;
      }
      if (answered) {
        a.active = false;
        response = t.s_axi_control_bresp;
      }
    } else {
      bool answered = t.s_axi_control_rvalid && a.address_taken;
      if (t.s_axi_control_arready) a.address_taken = true;
      if (answered) {
        a.active = false;
        response = t.s_axi_control_rresp;
        a.data = t.s_axi_control_rdata;
      }
    }
    if (response != 0) {
      violation_.report(name_, cycle, "register %#x answered with response %u", a.address, response);
    }
    if (a.active && ++a.waited > kAccessCycles) {
      violation_.report(name_, cycle, "register %#x did not answer within %u cycles", a.address,
                        kAccessCycles);
      a.active = false;
    }
  }

  // The first job of an idle kernel starts the stall sequences anew: its cycles are then the same
  // whenever the host starts it.
  void started(uint64_t cycle) {
    if (!busy()) memory.reseed(++batches_);
    if (counters.first_start == 0) counters.first_start = cycle;
    counters.starts++;
  }

  VerilatedContext context_;
  std::unique_ptr<Top> top_;
  uint64_t batches_ = 0;
  alignas(64) uint8_t w_data_[kBusBytes] = {};
#if HOTLINE_TRACE
  std::unique_ptr<TraceFile> trace_;
  uint64_t trace_begin_ = 0, trace_end_ = 0;
#endif
};

}  // namespace hotline
