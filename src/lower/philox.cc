// SPDX-License-Identifier: Apache-2.0
#include "lower/philox.h"

#include <utility>

namespace tpu::lower {
namespace {

using hlo::Value;

// High and low word of x * factor. Through 64 bits: XLA turns it into one widening multiply on CPU.
std::pair<Value, Value> MulHiLo(hlo::Builder& b, Value x, uint32_t factor) {
  Value product = b.Binary("multiply", b.Convert(x, DType::kU64), static_cast<int64_t>(factor));
  Value high = b.Binary("shift_right_logical", product, 32);
  return {b.Convert(high, DType::kU32), b.Binary("multiply", x, static_cast<int64_t>(factor))};
}

}  // namespace

std::array<Value, 4> Philox(hlo::Builder& b, Value low, Value high, Value key0, Value key1, int64_t count) {
  TensorType type(DType::kU32, {count});
  hlo::Ints dims = {count};
  Value first = b.Broadcast(low, dims);
  Value c0 = b.Add(first, b.Iota(type, 0));
  Value carry = b.Convert(b.Cmp(hlo::Compare::kLt, c0, first), DType::kU32);
  Value c1 = b.Add(b.Broadcast(high, dims), carry);
  Value c2 = b.Constant(type, 0), c3 = c2;
  for (int round = 0; round < 10; ++round) {
    if (round) {
      key0 = b.Binary("add", key0, int64_t{0x9E3779B9});
      key1 = b.Binary("add", key1, int64_t{0xBB67AE85});
    }
    auto [hi0, lo0] = MulHiLo(b, c0, 0xD2511F53u);
    auto [hi1, lo1] = MulHiLo(b, c2, 0xCD9E8D57u);
    Value next0 = b.Xor(b.Xor(hi1, c1), b.Broadcast(key0, dims));
    Value next2 = b.Xor(b.Xor(hi0, c3), b.Broadcast(key1, dims));
    c0 = next0, c1 = lo1, c2 = next2, c3 = lo0;
  }
  return {c0, c1, c2, c3};
}

}  // namespace tpu::lower
