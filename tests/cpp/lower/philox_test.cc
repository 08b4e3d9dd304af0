// SPDX-License-Identifier: Apache-2.0
// The generator against the published vectors and an independent implementation.
#include "lower/philox.h"

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using PhiloxTest = LowerTest;

struct Block {
  uint32_t w[4];
};

Block Reference(Block c, uint32_t k0, uint32_t k1) {
  for (int i = 0; i < 10; ++i) {
    uint64_t a = uint64_t{0xD2511F53} * c.w[0], b = uint64_t{0xCD9E8D57} * c.w[2];
    c = {{static_cast<uint32_t>(b >> 32) ^ c.w[1] ^ k0, static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c.w[3] ^ k1,
          static_cast<uint32_t>(a)}};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

std::vector<uint32_t> RunPhilox(uint64_t seed, uint64_t offset, int64_t count) {
  hlo::Builder b;
  auto word = [&](uint64_t v, int shift) { return b.Constant(DType::kU32, static_cast<int64_t>(v >> shift & 0xffffffff)); };
  auto words = Philox(b, word(offset, 0), word(offset, 32), word(seed, 0), word(seed, 32), count);
  hlo::Values rows;
  for (hlo::Value w : words) rows.push_back(b.Reshape(w, {1, count}));
  auto text = b.Finish({b.Concatenate(rows, 0)});
  std::vector<uint32_t> out(static_cast<size_t>(4 * count));
  EXPECT_TRUE(text.ok());
  pjrt::Client* client = TestClient();
  auto program = client->Compile(*text, client->DefaultCompileOptions());
  EXPECT_TRUE(program.ok()) << program.status().message();
  PJRT_Buffer* made = nullptr;
  Status run = program->Execute(nullptr, 0, nullptr, 0, client->devices()[0].device, &made);
  EXPECT_TRUE(run.ok()) << run.message();
  pjrt::Buffer buffer(client->api(), made);
  auto event = buffer.CopyToHost(out.data(), out.size() * 4);
  while (*event->WaitFor(std::chrono::seconds(1)) == pjrt::WaitOutcome::kTimedOut) {
  }
  return out;
}

TEST_F(PhiloxTest, PublishedVector) {
  EXPECT_EQ(RunPhilox(0, 0, 1), (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST_F(PhiloxTest, CountsAcrossTheLowWord) {
  const uint64_t seed = 0x0123456789abcdef, offset = 0x5fffffffd;
  const int64_t n = 8;
  std::vector<uint32_t> words = RunPhilox(seed, offset, n);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t counter = offset + static_cast<uint64_t>(i);
    Block want = Reference({{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}},
                           static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
    for (int64_t k = 0; k < 4; ++k) EXPECT_EQ(words[static_cast<size_t>(k * n + i)], want.w[k]) << i << " " << k;
  }
}

}  // namespace
}  // namespace tpu::lower
