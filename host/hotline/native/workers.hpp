// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Threads that stay, so that a large job need not start any.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

/// Runs the parts of a job on several threads, the caller's among them. One job at a time.
class Workers {
 public:
  explicit Workers(int threads) : wanted_(threads - 1), process_(process()) {}

  ~Workers() {
    if (process() != process_) {  // a child of fork(): the threads are not there
      for (std::thread& thread : threads_) thread.detach();
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closing_ = true;
    }
    begin_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return wanted_ + 1; }

  /// Calls `part(0)` ... `part(count - 1)`, in any order and at the same time; it must not throw.
  template <typename Part>
  void run(int64_t count, const Part& part) {
    if (count <= 1 || wanted_ <= 0 || process() != process_) {
      for (int64_t n = 0; n < count; ++n) part(n);
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      start();
      call_ = [](const void* what, int64_t n) { (*static_cast<const Part*>(what))(n); };
      part_ = &part;
      count_ = count;
      next_ = 0;
      busy_ = static_cast<int>(threads_.size());
      ++job_;
    }
    begin_.notify_all();
    work();
    std::unique_lock<std::mutex> lock(mutex_);
    end_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  static int64_t process() {
#if defined(__unix__) || defined(__APPLE__)
    return getpid();
#else
    return 0;
#endif
  }

  /// Starts the threads when they are needed for the first time; runs with fewer if there are no more.
  void start() {
    if (started_) return;
    started_ = true;
    try {
      for (int n = 0; n < wanted_; ++n) threads_.emplace_back([this] { loop(); });
    } catch (const std::system_error&) {
    }
  }

  void loop() {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        begin_.wait(lock, [&] { return closing_ || job_ != seen; });
        if (closing_) return;
        seen = job_;
      }
      work();
      const std::lock_guard<std::mutex> lock(mutex_);
      if (--busy_ == 0) end_.notify_one();
    }
  }

  void work() {
    for (int64_t n = next_++; n < count_; n = next_++) call_(part_, n);
  }

  const int wanted_;
  const int64_t process_;
  std::vector<std::thread> threads_;
  bool started_ = false, closing_ = false;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  uint64_t job_ = 0;
  int busy_ = 0;
  void (*call_)(const void*, int64_t) = nullptr;
  const void* part_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_{0};
};
