// SPDX-License-Identifier: Apache-2.0
// Cells and values: addresses, references, threads that end.
#include "engine/cell.h"

#include <set>
#include <thread>

#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class CellTest : public EngineTest {};

TEST_F(CellTest, AddressesAreUniqueAndLeadBack) {
  std::vector<Cell*> cells;
  std::set<void*> addresses;
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, size_t{1} << 16, size_t{5} << 20, size_t{3} << 30}) {
    for (int i = 0; i < 3; ++i) {
      Cell* cell = NewCell(bytes, 0, nullptr);
      cells.push_back(cell);
      char* address = static_cast<char*>(AddressOf(cell));
      EXPECT_TRUE(addresses.insert(address).second);
      EXPECT_EQ(FindCell(address), cell);
      EXPECT_EQ(FindCell(address + (bytes ? bytes - 1 : 0)), cell) << bytes;
    }
  }
  EXPECT_EQ(FindCell(nullptr), nullptr);
  int on_the_stack = 0;
  EXPECT_EQ(FindCell(&on_the_stack), nullptr);
  for (Cell* cell : cells) FreeCell(cell);
}

TEST_F(CellTest, SwapDropsTheOldValueAndLoadKeepsOne) {
  Value* first = NewValue(TensorType(DType::kF32, {4}), 0, ValueState::kUndefined);
  Cell* cell = NewCell(16, 0, first);
  Value* loaded = cell->Load();
  EXPECT_EQ(loaded, first);
  EXPECT_EQ(first->refs, 2);
  cell->Swap(NewValue(TensorType(DType::kF32, {4}), 0, ValueState::kUndefined));
  EXPECT_EQ(first->refs, 1);
  first->DecRef();
  FreeCell(cell);
}

TEST_F(CellTest, ThreadsLoadAndSwapOneCell) {
  TensorType type(DType::kF32, {256});
  Cell* cell = NewCell(type.bytes(), 0, NewValue(type, 0, ValueState::kReady));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20000; ++i) {
        if ((i + t) % 3) {
          Value* v = cell->Load();
          ASSERT_GT(v->refs, 0);
          ASSERT_EQ(v->bytes(), type.bytes());
          v->DecRef();
        } else {
          cell->Swap(NewValue(type, 0, ValueState::kReady));
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  FreeCell(cell);  // the fixture sees that no value is left
}

TEST_F(CellTest, ThreadsThatEndGiveTheirMemoryBack) {
  // Each thread would otherwise take a batch of cells with it: 30,000 threads a region.
  Cell* probe = NewCell(16, 0, nullptr);
  uint32_t highest = 0;
  for (int t = 0; t < 50; ++t) {
    std::thread([&] {
      std::vector<Cell*> cells;
      for (int i = 0; i < 100; ++i) cells.push_back(NewCell(16, 0, nullptr));
      for (Cell* c : cells) {
        highest = std::max(highest, c->slot);
        FreeCell(c);
      }
    }).join();
  }
  EXPECT_LT(highest, probe->slot + 1000);
  FreeCell(probe);
}

// A tensor in a thread-local variable that is older than the thread's pools dies after them.
struct Leftover {
  Cell* cell = nullptr;
  Value* value = nullptr;
  ~Leftover() {
    if (cell) FreeCell(cell);
    if (value) value->DecRef();
  }
};
thread_local Leftover t_leftover;

TEST_F(CellTest, ThreadLocalObjectsMayOutliveThePools) {
  for (int t = 0; t < 20; ++t) {
    std::thread([] {
      t_leftover.cell = nullptr;  // constructed before the pools
      t_leftover.value = NewValue(TensorType(DType::kF32, {4}), 0, ValueState::kUndefined);
      t_leftover.cell = NewCell(16, 0, nullptr);
      for (int i = 0; i < 300; ++i) FreeCell(NewCell(16, 0, nullptr));
    }).join();
    // What the ended thread freed is in order, and used by the next.
    std::vector<Cell*> cells;
    std::set<Cell*> distinct;
    for (int i = 0; i < 200; ++i) cells.push_back(NewCell(16, 0, nullptr));
    for (Cell* c : cells) {
      EXPECT_TRUE(distinct.insert(c).second) << "one cell was handed out twice";
      FreeCell(c);
    }
  }
}

}  // namespace
}  // namespace tpu::engine
