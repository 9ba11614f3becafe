// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// Threads for the processes of a dataflow region, and how they wait for streams.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace hotline {
namespace csim {

/// All processes of a region wait for one another.
struct Deadlock : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Group;

/// What a process may wait for: room in a stream, or an element of it.
class Waitable {
 public:
  virtual ~Waitable() = default;

 protected:
  friend class Group;
  virtual bool can(bool write) const = 0;
  virtual std::string name() const = 0;
  inline void wait(bool write);
  inline void wake();

 private:
  std::atomic<int> waiting_{0};
};

/// The processes of one dataflow region; each is a thread.
class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// To be destroyed only after join; if a later process could not start, the others are stopped.
  ~Group() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (error_ == nullptr && alive_ > 0) {
        error_ = std::make_exception_ptr(std::runtime_error("the region was left early"));
      }
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  /// Starts a process.
  void run(const char* name, std::function<void()> process) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++alive_;
    }
    threads_.emplace_back([this, name, process] {
      current() = {this, name};
      try {
        process();
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (error_ == nullptr) error_ = std::current_exception();
      }
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        --alive_;
        look();
      }
      changed_.notify_all();
    });
  }

  /// Waits for all processes; throws what the first one threw that failed.
  void join() {
    for (std::thread& thread : threads_) thread.join();
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  friend class Waitable;
  struct Self {
    Group* group;
    const char* name;
  };
  struct Waiter {
    const Waitable* on;
    bool write;
    const char* name;
  };

  static Self& current() {
    static thread_local Self self{nullptr, "the caller"};
    return self;
  }

  void wait(Waitable& on, bool write, const char* name) {
    std::unique_lock<std::mutex> lock(mutex_);
    ++on.waiting_;
    const Waiter waiter{&on, write, name};
    waiters_.push_back(&waiter);
    look();
    while (error_ == nullptr && !on.can(write)) changed_.wait(lock);
    for (size_t n = 0; n < waiters_.size(); ++n) {
      if (waiters_[n] == &waiter) waiters_.erase(waiters_.begin() + static_cast<std::ptrdiff_t>(n--));
    }
    --on.waiting_;
    // A process that has what it waited for goes on; one that never gets it must not.
    if (!on.can(write)) std::rethrow_exception(error_);
  }

  /// With the lock held: if every process waits and none has what it waits for, ends the region.
  void look() {
    if (error_ != nullptr || alive_ == 0 || waiters_.size() < alive_) return;
    std::string text = "the dataflow region is stuck:";
    for (const Waiter* waiter : waiters_) {
      if (waiter->on->can(waiter->write)) return;
      text += std::string(" ") + waiter->name + (waiter->write ? " waits for room in " : " waits for ") +
              waiter->on->name() + ";";
    }
    error_ = std::make_exception_ptr(Deadlock(text));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  std::vector<const Waiter*> waiters_;
  size_t alive_ = 0;
  std::exception_ptr error_;
};

inline void Waitable::wait(bool write) {
  Group* const group = Group::current().group;
  const char* const name = Group::current().name;
  if (group == nullptr) {  // outside of a region nobody else will ever change the stream
    throw Deadlock(std::string(name) + (write ? " waits for room in " : " waits for ") + this->name());
  }
  for (int tries = 0; tries < 64; ++tries) {  // the other side is often about to be there
    if (can(write)) return;
    std::this_thread::yield();
  }
  group->wait(*this, write, name);
}

inline void Waitable::wake() {
  if (waiting_.load() == 0) return;
  Group* const group = Group::current().group;
  if (group == nullptr) return;
  { const std::lock_guard<std::mutex> lock(group->mutex_); }  // not between its look and its wait
  group->changed_.notify_all();
}

}  // namespace csim
}  // namespace hotline
