// Copyright Hotline contributors.
// SPDX-License-Identifier: Apache-2.0
//
// A device for the cores: memory of bus words from address 0 on, and calls by ctypes. The host
// copies arrays in and out, as it would over PCIe.
#include "tops.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <vector>

namespace {

typedef hotline::Bus<HOTLINE_BUS_BITS> bus;

/// The memory, once in bus words and once in 32-bit words: a core writes through either, never the
/// same place through both.
struct Memory {
  std::vector<hotline_word> words;
  std::vector<uint32_t> tail, before;
};

uint64_t chunk(const hotline_word& word, int n) {
  return uint64_t(word.range(64 * n + 63, 64 * n));
}

/// Takes over what was written through the 32-bit port.
void merge(Memory& memory) {
  for (size_t n = 0; n < memory.tail.size(); ++n) {
    if (memory.tail[n] == memory.before[n]) continue;
    const int lane = static_cast<int>(n % bus::lanes);
    memory.words[n / bus::lanes].range(32 * lane + 31, 32 * lane) = memory.tail[n];
  }
}

int report(char* message, uint64_t size, const char* text) {
  std::strncpy(message, text, size - 1);
  message[size - 1] = '\0';
  return -1;
}

}  // namespace

extern "C" {

/// Memory with the contents of `bytes` (a multiple of a bus word).
void* hotline_csim_memory(const uint8_t* bytes, uint64_t size) {
  Memory* const memory = new Memory;
  memory->words.resize(size / bus::bytes);
  memory->tail.resize(size / 4);
  std::memcpy(memory->tail.data(), bytes, size);
  memory->before = memory->tail;
  for (size_t n = 0; n < memory->words.size(); ++n) {
    for (int part = 0; part < bus::bytes / 8; ++part) {
      uint64_t value;
      std::memcpy(&value, bytes + n * bus::bytes + static_cast<size_t>(part) * 8, 8);
      memory->words[n].range(64 * part + 63, 64 * part) = value;
    }
  }
  return memory;
}

/// Copies the memory's contents out and frees it.
void hotline_csim_take(void* handle, uint8_t* bytes) {
  Memory* const memory = static_cast<Memory*>(handle);
  merge(*memory);
  for (size_t n = 0; n < memory->words.size(); ++n) {
    for (int part = 0; part < bus::bytes / 8; ++part) {
      const uint64_t value = chunk(memory->words[n], part);
      std::memcpy(bytes + n * bus::bytes + static_cast<size_t>(part) * 8, &value, 8);
    }
  }
  delete memory;
}

/// Runs a job. `scalars` and `addresses` are the core's arguments in order. Returns 0, or -1 with a
/// message.
int hotline_csim_fragmenter(void* handle, const uint32_t* scalars, const uint64_t* addresses,
                            hotline::Result* result, char* message, uint64_t size) {
  Memory& memory = *static_cast<Memory*>(handle);
  try {
    hotline_fragmenter_core(memory.words.data(), memory.words.data(), memory.words.data(),
                            memory.tail.data(), scalars[0], scalars[1], scalars[2], scalars[3],
                            scalars[4], scalars[5], scalars[6], scalars[7], scalars[8], scalars[9],
                            addresses[0], addresses[1], addresses[2], addresses[3], addresses[4],
                            addresses[5], addresses[6], result);
  } catch (const std::exception& error) {
    return report(message, size, error.what());
  }
  return 0;
}

int hotline_csim_gatherer(void* handle, const uint32_t* scalars, const uint64_t* addresses,
                          hotline::Result* result, char* message, uint64_t size) {
  Memory& memory = *static_cast<Memory*>(handle);
  try {
    hotline_gatherer_core(memory.words.data(), memory.words.data(), memory.words.data(), scalars[0],
                          scalars[1], scalars[2], scalars[3], scalars[4], scalars[5], addresses[0],
                          addresses[1], addresses[2], result);
  } catch (const std::exception& error) {
    return report(message, size, error.what());
  }
  return 0;
}

}  // extern "C"
