// SPDX-License-Identifier: Apache-2.0
// The 128-bit streaming hash of keys.
#pragma once
#include <cstdint>

namespace tpu {

struct Fingerprint {
  uint64_t lo = 0, hi = 0;
  friend bool operator==(const Fingerprint& a, const Fingerprint& b) { return a.lo == b.lo && a.hi == b.hi; }
};

// Multiply-fold over 64-bit words. Not cryptographic: every use compares the full key once (compile/memory_cache.h).
class Hasher {
 public:
  void Add(uint64_t word) {
    auto m = static_cast<unsigned __int128>(word ^ lo_) * 0xD6E8FEB86659FD93ull;
    lo_ = static_cast<uint64_t>(m) ^ static_cast<uint64_t>(m >> 64) ^ hi_;
    hi_ = (hi_ ^ static_cast<uint64_t>(m >> 64)) * 0x9E3779B97F4A7C15ull + word;
  }
  Fingerprint Finish() const { return {lo_, hi_}; }

 private:
  uint64_t lo_ = 0x9E3779B97F4A7C15ull, hi_ = 0xC2B2AE3D27D4EB4Full;
};

// FNV-1a of a name; stable across processes and builds.
constexpr uint64_t HashName(const char* name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (; *name; ++name) h = (h ^ static_cast<unsigned char>(*name)) * 0x100000001b3ull;
  return h;
}

}  // namespace tpu
