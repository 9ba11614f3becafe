// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// hls::stream for g++ and clang, where Vitis HLS is not there: a FIFO with the depth it was given,
// between two threads. A reader waits for an element and a writer for room, as in hardware, so that a
// stream that is too shallow, or that nobody reads, is found here: when all processes of a dataflow
// region wait, the region ends with a report of who waits for which stream (hotline::csim::Deadlock).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "process.hpp"

namespace hls {

template <typename T, int Depth = 2>
class stream : private hotline::csim::Waitable {
  static_assert(Depth >= 1, "a stream holds at least one element");

 public:
  explicit stream(const char* name = "stream") : name_(name), slots_(Depth) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  T read() {
    const uint64_t at = taken_.load(std::memory_order_relaxed);
    if (given_.load() == at) wait(false);
    T value = slots_[at % Depth];
    taken_.store(at + 1);
    wake();
    return value;
  }

  void write(const T& value) {
    const uint64_t at = given_.load(std::memory_order_relaxed);
    if (at - taken_.load() == Depth) wait(true);
    slots_[at % Depth] = value;
    given_.store(at + 1);
    wake();
  }

  bool empty() const { return given_.load() == taken_.load(); }

 private:
  bool can(bool write) const override {
    const uint64_t held = given_.load() - taken_.load();
    return write ? held < Depth : held > 0;
  }
  std::string name() const override { return name_; }

  const char* name_;
  std::vector<T> slots_;
  std::atomic<uint64_t> given_{0}, taken_{0};
};

}  // namespace hls
