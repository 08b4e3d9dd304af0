// SPDX-License-Identifier: Apache-2.0
#include "pjrt/search.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tpu::pjrt {
namespace {

namespace fs = std::filesystem;

class SearchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tpu_search_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    unsetenv("TPU_LIBRARY_PATH");
    request_.folders = {"", "relative", "/nonexistent", root_};
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string Put(const std::string& file, const std::string& text = "x") {
    fs::path path = fs::path(root_) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  std::string Found() {
    Result<PluginChoice> choice = FindPlugin(request_);
    return choice.ok() ? choice->path : "error: " + choice.status().message();
  }
  bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  std::string root_;
  SearchRequest request_;
};

TEST_F(SearchTest, Off) {
  request_.engine = "off";
  request_.plugin_path = "/some/plugin.so";
  EXPECT_TRUE(Contains(Found(), "switched off by the setting engine=off")) << Found();
}

TEST_F(SearchTest, ExplicitPathWins) {
  Put("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
  request_.plugin_path = "/some/plugin.so";
  EXPECT_EQ(Found(), "/some/plugin.so");
}

TEST_F(SearchTest, CpuPlugins) {
  request_.engine = "cpu";
  EXPECT_TRUE(Contains(Found(), "pip install xla-cpu-pjrt")) << Found();
  std::string second = Put("fastatomstruct_xla_cpu/libpjrt_cpu.so");
  EXPECT_TRUE(Contains(Found(), "TORCH_TPU_CPU_PLUGIN=fastatomstruct-xla-cpu")) << Found();
  std::string first = Put("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
  EXPECT_EQ(Found(), first);
  request_.cpu_plugin = "fastatomstruct-xla-cpu";
  EXPECT_EQ(Found(), second);
  request_.cpu_plugin = "lammps-jax-pjrt-cpu";
  EXPECT_TRUE(Contains(Found(), "pip install lammps-jax-pjrt-cpu")) << Found();
  std::string third = Put("lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so");
  EXPECT_EQ(Found(), third);
  request_.cpu_plugin = "other";
  EXPECT_EQ(FindPlugin(request_).status().kind(), ErrorKind::kValue);
}

TEST_F(SearchTest, Tpu) {
  request_.engine = "tpu";
  EXPECT_TRUE(Contains(Found(), "pip install libtpu")) << Found();
  std::string libtpu = Put("libtpu/libtpu.so");
  EXPECT_EQ(Found(), libtpu);
  setenv("TPU_LIBRARY_PATH", "/elsewhere/libtpu.so", 1);
  EXPECT_EQ(Found(), "/elsewhere/libtpu.so");
  unsetenv("TPU_LIBRARY_PATH");
}

TEST_F(SearchTest, AutoWithoutATpuTakesTheCpu) {
  if (TpuOnBus()) GTEST_SKIP() << "there is a TPU";
  Put("libtpu/libtpu.so");
  std::string cpu = Put("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
  EXPECT_EQ(Found(), cpu);
}

TEST_F(SearchTest, Bus) {
  EXPECT_FALSE(TpuOnBus(root_ + "/pci"));
  Put("pci/0000:00:03.0/vendor", "0x1ae0\n");
  Put("pci/0000:00:03.0/device", "0x0042\n");  // Google's network card
  Put("pci/0000:00:04.0/vendor", "0x8086\n");
  Put("pci/0000:00:04.0/device", "0x0063\n");
  EXPECT_FALSE(TpuOnBus(root_ + "/pci"));
  Put("pci/0000:00:05.0/vendor", "0x1ae0\n");
  Put("pci/0000:00:05.0/device", "0x0063\n");  // v5e
  EXPECT_TRUE(TpuOnBus(root_ + "/pci"));
}

}  // namespace
}  // namespace tpu::pjrt
