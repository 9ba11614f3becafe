// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0

// A device of two Verilated kernels on one clock, behind a C interface for ctypes.
//
// Built by hotline/device/sim.py, once per configuration. Any thread may call in; a call that finds
// another thread in `hotline_run` makes it step aside for as long as a register access takes.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "Vfragmenter.h"
#include "Vgatherer.h"
#include "hooks.hpp"
#include "kernel.hpp"

#define HOTLINE_EXPORT extern "C" __attribute__((visibility("default")))

namespace hotline {

thread_local Evaluation* evaluation = nullptr;

namespace {

constexpr unsigned kKernels = 2;

class Model {
 public:
  Model(uint64_t seed, bool randomise)
      : fragmenter_("fragmenter", regions, violation, seed, randomise),
        gatherer_("gatherer", regions, violation, seed + 1, randomise),
        kernels{&fragmenter_, &gatherer_} {}

  // Lets a caller in although a thread runs the model.
  class Entry {
   public:
    explicit Entry(Model& model) : model_(model) {
      model_.waiting_.fetch_add(1);
      model_.mutex_.lock();
      model_.waiting_.fetch_sub(1);
    }
    ~Entry() { model_.mutex_.unlock(); }

   private:
    Model& model_;
  };

  void tick() {
    for (KernelBase* kernel : kernels) {
      if (!gating || !kernel->idle()) kernel->cycle(cycle);
    }
    cycle++;
  }

  void reset(uint32_t settle) {
    violation.clear();
    for (KernelBase* kernel : kernels) kernel->reset(cycle);
    cycle += 8;
    bool gated = gating;
    gating = false;  // memories are initialised although no job is there
    for (uint32_t i = 0; i < settle && !violation.any(); i++) tick();
    gating = gated;
  }

  bool access(unsigned kernel, bool write, uint32_t address, uint32_t& data) {
    if (violation.any()) return false;
    KernelBase& k = *kernels[kernel];
    k.begin_access(write, address, data);
    while (!k.access_done()) {
      tick();
      if (violation.any()) return false;
    }
    data = k.access_data();
    return true;
  }

  // Runs until an interrupt of `levels` is active, one of `edges` has risen more often than `seen`
  // says, `most` cycles have gone, or a rule was broken. Returns false in that last case.
  bool run(uint64_t most, uint32_t levels, uint32_t edges, const uint64_t* seen) {
    for (uint64_t i = 0;; i++) {
      for (unsigned k = 0; k < kKernels; k++) {
        if ((levels >> k & 1) && kernels[k]->interrupt) return true;
        if ((edges >> k & 1) && kernels[k]->counters.interrupts != seen[k]) return true;
      }
      if (i == most) return true;
      tick();
      if (violation.any()) return false;
      if (waiting_.load(std::memory_order_relaxed) != 0) {
        mutex_.unlock();
        while (waiting_.load() != 0) std::this_thread::yield();
        mutex_.lock();
        if (violation.any()) return false;
      }
    }
  }

  Regions regions;
  Violation violation;
  uint64_t cycle = 1;
  bool gating = true;

 private:
  Kernel<Vfragmenter> fragmenter_;
  Kernel<Vgatherer> gatherer_;
  std::mutex mutex_;
  std::atomic<int> waiting_{0};

 public:
  KernelBase* const kernels[kKernels];
};

}  // namespace
}  // namespace hotline

// ------------------------------------------------------------------- Verilator's run-time messages
// An assertion, $fatal or $stop must end in an exception of the host, not in abort().

static thread_local std::string printed;

extern "C" int hotline_printf(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  int size = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  printed += line;
  if (printed.size() > 4096) printed.erase(0, printed.size() - 4096);
  return size;
}

static void stopped(const char* what, const char* file, int line) {
  std::string text = printed;
  printed.clear();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (hotline::Evaluation* e = hotline::evaluation) {
    e->violation->report(e->name, e->cycle, "%s at %s:%d: %s", what, file, line, text.c_str());
  }
}

void vl_finish(const char* file, int line, const char*) VL_MT_UNSAFE { stopped("$finish", file, line); }
void vl_stop(const char* file, int line, const char*) VL_MT_UNSAFE { stopped("assertion", file, line); }
void vl_fatal(const char* file, int line, const char*, const char* text) VL_MT_UNSAFE {
  hotline_printf("%s", text);
  stopped("fatal error", file, line);
}

// ------------------------------------------------------------------------------------ C interface

using hotline::Model;

HOTLINE_EXPORT Model* hotline_new(uint64_t seed, int randomise) {
  return new Model(seed, randomise != 0);
}

HOTLINE_EXPORT void hotline_delete(Model* model) { delete model; }

HOTLINE_EXPORT int hotline_reset(Model* model, uint32_t settle) {
  Model::Entry entry(*model);
  model->reset(settle);
  return model->violation.any() ? -1 : 0;
}

HOTLINE_EXPORT int hotline_timing(Model* model, unsigned kernel, const hotline::Timing* timing) {
  Model::Entry entry(*model);
  model->kernels[kernel]->memory.timing = *timing;
  return 0;
}

HOTLINE_EXPORT void hotline_gating(Model* model, int on) {
  Model::Entry entry(*model);
  model->gating = on != 0;
}

HOTLINE_EXPORT int hotline_add_region(Model* model, uint64_t base, uint64_t size, uint8_t* host) {
  Model::Entry entry(*model);
  return model->regions.add({base, size, host}) ? 0 : -1;
}

HOTLINE_EXPORT int hotline_remove_region(Model* model, uint64_t base) {
  Model::Entry entry(*model);
  return model->regions.remove(base) ? 0 : -1;
}

HOTLINE_EXPORT void hotline_add_fault(Model* model, const hotline::Fault* fault) {
  Model::Entry entry(*model);
  model->regions.faults.push_back(*fault);
}

HOTLINE_EXPORT void hotline_clear_faults(Model* model) {
  Model::Entry entry(*model);
  model->regions.faults.clear();
}

HOTLINE_EXPORT int hotline_read(Model* model, unsigned kernel, uint32_t address, uint32_t* data) {
  Model::Entry entry(*model);
  return model->access(kernel, false, address, *data) ? 0 : -1;
}

HOTLINE_EXPORT int hotline_write(Model* model, unsigned kernel, uint32_t address, uint32_t data) {
  Model::Entry entry(*model);
  return model->access(kernel, true, address, data) ? 0 : -1;
}

HOTLINE_EXPORT int hotline_run(Model* model, uint64_t most, uint32_t levels, uint32_t edges,
                               const uint64_t* seen) {
  Model::Entry entry(*model);
  return model->run(most, levels, edges, seen) ? 0 : -1;
}

// State of a kernel, as 64-bit numbers; the order is known to sim.py.
HOTLINE_EXPORT void hotline_state(Model* model, unsigned kernel, uint64_t* values) {
  Model::Entry entry(*model);
  const hotline::KernelBase& k = *model->kernels[kernel];
  const hotline::MemoryCounters& m = k.memory.counters;
  const uint64_t all[] = {
      model->cycle, k.interrupt, k.counters.interrupts, k.counters.starts, k.counters.resumes,
      k.counters.first_start, k.counters.last_interrupt, k.counters.cycles,
      k.memory.reads_in_flight(), k.memory.writes_in_flight(), m.read_bursts, m.write_bursts,
      m.read_beats, m.write_beats, m.reads_most, m.writes_most,
  };
  std::memcpy(values, all, sizeof all);
}

// Starts the measurement of a sequence of jobs.
HOTLINE_EXPORT void hotline_clear_counters(Model* model, unsigned kernel) {
  Model::Entry entry(*model);
  hotline::KernelBase& k = *model->kernels[kernel];
  k.counters.first_start = k.counters.last_interrupt = 0;
  k.memory.counters = hotline::MemoryCounters{};
}

HOTLINE_EXPORT void hotline_violation(Model* model, char* text, uint32_t size) {
  Model::Entry entry(*model);
  std::snprintf(text, size, "%s", model->violation.text().c_str());
}

HOTLINE_EXPORT int hotline_trace(Model* model, unsigned kernel, const char* path, uint64_t begin,
                                 uint64_t end) {
  Model::Entry entry(*model);
  return model->kernels[kernel]->trace(path, begin, end) ? 0 : -1;
}

// Writes the counts of a build for coverage; otherwise an empty file.
HOTLINE_EXPORT void hotline_coverage(Model* model, unsigned kernel, const char* path) {
  Model::Entry entry(*model);
  model->kernels[kernel]->coverage(path);
}
