// SPDX-License-Identifier: Apache-2.0
#include "engine/host_words.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tpu::engine {
namespace {

double AsDouble(uint64_t bits) {
  double d;
  std::memcpy(&d, &bits, 8);
  return d;
}

int64_t ToInteger(uint64_t bits, DType from) {
  if (from != DType::kF64 && !IsComplex(from)) return static_cast<int64_t>(bits);
  double d = AsDouble(bits);
  // C++ leaves out-of-range conversions undefined; x86 gives the least integer for them, as ATen's kernels show.
  if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(d);
}

double ToDouble(uint64_t bits, DType from) {
  return from == DType::kF64 || IsComplex(from) ? AsDouble(bits)
         : from == DType::kU64                  ? static_cast<double>(bits)
                                                : static_cast<double>(static_cast<int64_t>(bits));
}

template <class T>
void Put(uint32_t* w, T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  std::memcpy(w, &v, sizeof v);
}

}  // namespace

void PackHostWords(const Program& program, const uint64_t* raw, uint32_t* words) {
  for (const lower::HostField& f : program.host_fields) {
    uint32_t* w = words + f.word;
    DType from = f.from;
    uint64_t bits = raw[f.raw];
    switch (f.to) {
      case DType::kF32:
        Put(w, from == DType::kI64 ? static_cast<float>(static_cast<int64_t>(bits)) : static_cast<float>(ToDouble(bits, from)));
        break;
      case DType::kF64:
        Put(w, ToDouble(bits, from));
        break;
      case DType::kI64:
      case DType::kU64:
        Put(w, ToInteger(bits, from));
        break;
      case DType::kC64:
        Put(w, static_cast<float>(ToDouble(bits, from)));
        Put(w + 1, IsComplex(from) ? static_cast<float>(AsDouble(raw[f.raw + 1])) : 0.f);
        break;
      case DType::kC128:
        Put(w, ToDouble(bits, from));
        Put(w + 2, IsComplex(from) ? AsDouble(raw[f.raw + 1]) : 0.0);
        break;
      default:  // every narrower integer, and bool: the low word
        Put(w, static_cast<uint32_t>(ToInteger(bits, from)));
        break;
    }
  }
}

}  // namespace tpu::engine
