// SPDX-License-Identifier: Apache-2.0
#include "engine/host_argument.h"

#include <cstring>
#include <utility>
#include <vector>

#include "engine/counters.h"
#include "engine/launch.h"
#include "engine/runtime.h"
#include "pjrt/buffer.h"

namespace tpu::engine {
namespace {

struct HostArgument {
  int words = 0;
  int8_t device = 0;
  std::vector<uint32_t> content;
  pjrt::Buffer buffer;
  void* memory = nullptr;    // the buffer's own, where the engine's memory is the host's
  uint64_t last_launch = 0;  // position of the last launch that reads it
};
constexpr size_t kHostArguments = 256;
HostArgument* HostArguments() {
  static auto* table = new HostArgument[kHostArguments];
  return table;
}

}  // namespace

Result<PJRT_Buffer*> HostArgumentBuffer(const uint32_t* words, int n, int device, uint64_t position) {
  uint64_t h = static_cast<uint64_t>(n) * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(device);
  for (int i = 0; i < n; ++i) {
    h = (h ^ words[i]) * 0xD6E8FEB86659FD93ull;
    h ^= h >> 32;
  }
  HostArgument& a = HostArguments()[h % kHostArguments];
  bool fits = a.words == n && a.device == device && a.buffer;
  uint64_t last_launch = std::exchange(a.last_launch, position);
  if (fits && !std::memcmp(a.content.data(), words, sizeof(uint32_t) * n)) {
    CountRelaxed(g_counters.host_argument_hits);
    return a.buffer.get();
  }
  CountRelaxed(g_counters.host_argument_uploads);
  // Nobody reads the old content any more: new content in the same memory costs a twentieth of a new buffer.
  if (fits && a.memory && LaunchesDone(last_launch + 1)) {
    std::memcpy(a.memory, words, sizeof(uint32_t) * n);
    std::memcpy(a.content.data(), words, sizeof(uint32_t) * n);
    return a.buffer.get();
  }
  // Copied, never zero-copy: the kept content must not change under a program in flight.
  auto buffer = Runtime::Started().client().BufferFromHost(words, TensorType(DType::kU32, {n}), device,
                                                           pjrt::HostBufferSemantics::kImmutableOnlyDuringCall);
  if (!buffer.ok()) return buffer.status();
  a.words = n;
  a.device = static_cast<int8_t>(device);
  a.content.assign(words, words + n);
  a.buffer = std::move(*buffer);
  a.memory = nullptr;
  Status error;
  if (Runtime::Started().profile().host_addressable && a.buffer.IsReady(&error) && error.ok()) {
    auto pointer = a.buffer.HostPointer();
    if (pointer.ok()) a.memory = const_cast<void*>(*pointer);
  }
  return a.buffer.get();
}

void DropHostArguments() {
  for (size_t i = 0; i < kHostArguments; ++i) HostArguments()[i] = HostArgument();
}

}  // namespace tpu::engine
