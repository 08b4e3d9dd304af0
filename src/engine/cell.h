// SPDX-License-Identifier: Apache-2.0
// Cell: the mutable thing behind a storage: device, size in bytes and the current value. A cell is a slot in an address
// range that is reserved and never accessible, so that the storage has a unique fake address, and the cell is found from
// any address inside it without a lock (storages also arrive by address alone).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/value.h"

namespace tpu::engine {

struct Cell {
  std::atomic<uintptr_t> value{0};  // Value*, low bit: locked
  size_t bytes = 0;
  uint32_t slot = 0;
  uint8_t size_class = 0;
  int8_t device = 0;

  // The current value, one reference more.
  Value* Load() {
    Value* v = reinterpret_cast<Value*>(Lock());
    v->IncRef();
    Unlock(v);
    return v;
  }
  // Takes the caller's reference of `fresh`; drops the cell's reference of the old value.
  void Swap(Value* fresh) {
    Value* old = reinterpret_cast<Value*>(Lock());
    Unlock(fresh);
    old->DecRef();
  }

 private:
  uintptr_t Lock() {
    for (int i = 0;; ++i) {
      uintptr_t v = value.fetch_or(1, std::memory_order_acquire);
      if (!(v & 1)) return v;
      Pause(i);
    }
  }
  void Unlock(Value* v) { value.store(reinterpret_cast<uintptr_t>(v), std::memory_order_release); }
  static void Pause(int round);
};

// A fresh cell of `bytes` that holds `value` (takes the reference; null: undefined bytes). Counts towards the device's
// allocated bytes until FreeCell. Never fails except by aborting when 2^26 cells of one size are alive.
Cell* NewCell(size_t bytes, int device, Value* value);
void FreeCell(Cell* cell);
// The fake address of a cell; views add their byte offset to it.
void* AddressOf(const Cell* cell);
// Null when the address is not inside the reserved range.
Cell* FindCell(const void* address);

}  // namespace tpu::engine
