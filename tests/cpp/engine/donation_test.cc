// SPDX-License-Identifier: Apache-2.0
// In-place programs: when the old buffer becomes the new one, and when the worker keeps it.
#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class DonationTest : public EngineTest {
 protected:
  static const void* Pointer(const Array& a) {
    ValueRef v(a.cell->Load());
    EXPECT_OK(Wait(v.get()));
    return HostPointer(v.get());
  }
};

TEST_F(DonationTest, ABufferNobodyElseHoldsIsReused) {
  Array x = Filled({64}, 1), one = Filled({64}, 1);
  AddInPlace(x, one);  // an upload's memory may be the plugin's own affair
  const void* before = Pointer(x);
  CounterDelta count;
  AddInPlace(x, one);
  EXPECT_FILLED(x, 3);
  EXPECT_EQ(count["donated"], 1);
  EXPECT_EQ(count["vetoed"], 0);
  EXPECT_EQ(Pointer(x), before);
}

TEST_F(DonationTest, AValueThatTwoCellsShareIsKept) {
  Array x = Filled({64}, 1), one = Filled({64}, 1);
  Array y = x.Shared();
  CounterDelta count;
  AddInPlace(x, one);
  EXPECT_FILLED(x, 2);
  EXPECT_FILLED(y, 1);
  EXPECT_EQ(count["vetoed"], 1);
  EXPECT_EQ(count["donated"], 0);
}

TEST_F(DonationTest, AReadersValueIsKept) {
  Array x = Filled({64}, 1), one = Filled({64}, 1);
  ValueRef reader(x.cell->Load());
  CounterDelta count;
  AddInPlace(x, one);
  EXPECT_FILLED(x, 2);
  EXPECT_EQ(count["vetoed"], 1);
  std::vector<float> old(64);
  EXPECT_OK(ReadToHost(reader.get(), old.data()));
  EXPECT_EQ(old[63], 1);
}

TEST_F(DonationTest, OneBufferAsTwoArgumentsIsKept) {
  Array x = Filled({64}, 3);
  AddInPlace(x, x.Shared());  // the other cell is gone when the worker comes
  EXPECT_FILLED(x, 6);
  AddInPlace(x, x);
  EXPECT_FILLED(x, 12);
}

TEST_F(DonationTest, EarlierReadersInTheQueueDoNotVeto) {
  Array x = Filled({64}, 1), one = Filled({64}, 1);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  CounterDelta count;
  HeldQueue held;
  Array before = Add(x, one);
  AddInPlace(x, one);
  Array after = Add(x, one);
  held.Release();
  EXPECT_FILLED(before, 2);
  EXPECT_FILLED(after, 3);
  EXPECT_EQ(count["donated"], 1);
}

TEST_F(DonationTest, SizesThatDonationSlowsDownAreKept) {
  const pjrt::EngineProfile& profile = Runtime::Started().profile();
  if (profile.no_donation_max_bytes == 0) GTEST_SKIP() << "the profile has no such sizes";
  auto elements = [](size_t bytes) { return static_cast<int64_t>(bytes / sizeof(float)); };
  for (auto [n, donated] : {std::pair{elements(profile.no_donation_min_bytes) - 1, 1},
                            {elements(profile.no_donation_min_bytes), 0},
                            {elements(profile.no_donation_max_bytes) - 1, 0},
                            {elements(profile.no_donation_max_bytes), 1}}) {
    Array x = Filled({n}, 1), one = Filled({n}, 1);
    CounterDelta count;
    AddInPlace(x, one);
    EXPECT_FILLED(x, 2);
    EXPECT_EQ(count["donated"], donated) << n;
    EXPECT_EQ(count["vetoed"], 1 - donated) << n;
  }
}

TEST_F(DonationTest, WritesThroughViewsDonateTheBase) {
  Array x = Filled({8, 4}, 1), one = Filled({2, 4}, 1);
  CounterDelta count;
  AddInPlace(x.Narrow(3, 2), one);
  auto all = Read(x);
  ASSERT_TRUE(all.ok());
  for (size_t i = 0; i < all->size(); ++i) EXPECT_EQ((*all)[i], i / 4 == 3 || i / 4 == 4 ? 2 : 1) << i;
  EXPECT_EQ(count["donated"], 1);
}

TEST_F(DonationTest, FunctionalProgramsNeverDonate) {
  CounterDelta count;
  Array one = Filled({64}, 1);
  Array sum = Add(Filled({64}, 1), one);  // the operand is gone after this line
  EXPECT_FILLED(sum, 2);
  EXPECT_EQ(count["donated"] + count["vetoed"], 0);
}

}  // namespace
}  // namespace tpu::engine
