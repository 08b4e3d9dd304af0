// SPDX-License-Identifier: Apache-2.0
#include "pjrt/plugin.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "pjrt/plugin_checks.h"
#include "test_util.h"

namespace tpu::pjrt {
namespace {

using testing::TempDir;

class PluginFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = TempDir() + "tpu_plugin_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    file_ = folder_ + "/plugin.so";
    std::ofstream(file_) << "not a library";
    chmod(file_.c_str(), 0755);
  }
  void TearDown() override {
    unlink(file_.c_str());
    unlink((folder_ + "/link.so").c_str());
    rmdir(folder_.c_str());
  }
  std::string Message(const std::string& path) {
    Result<const Plugin*> plugin = Plugin::Load(path);
    return plugin.ok() ? "" : plugin.status().message();
  }
  void ExpectMessage(const std::string& path, const std::string& part) {
    EXPECT_NE(Message(path).find(part), std::string::npos) << Message(path);
  }
  std::string folder_, file_;
};

TEST_F(PluginFileTest, Missing) {
  ExpectMessage(folder_ + "/nothing.so", "no such file");
  ExpectMessage(file_ + "/below", "no such file");
  ExpectMessage("", "no such file");
}

TEST_F(PluginFileTest, NotAFile) { ExpectMessage(folder_, "not a regular file"); }

TEST_F(PluginFileTest, NotALibrary) { ExpectMessage(file_, "is not a PJRT plugin"); }

TEST_F(PluginFileTest, LibraryWithoutEntry) {
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::malloc), &info), 0);
  ExpectMessage(info.dli_fname, "no symbol GetPjrtApi");
}

TEST_F(PluginFileTest, WritableByOthers) {
  chmod(file_.c_str(), 0757);
  ExpectMessage(file_, "is writable by others");
  ASSERT_EQ(symlink(file_.c_str(), (folder_ + "/link.so").c_str()), 0);
  ExpectMessage(folder_ + "/link.so", "is writable by others");
}

TEST_F(PluginFileTest, FolderWritableByOthers) {
  chmod(folder_.c_str(), 0777);
  ExpectMessage(file_, "lies in");
  chmod(folder_.c_str(), 01777);
  ExpectMessage(file_, "is not a PJRT plugin");
}

TEST_F(PluginFileTest, OwnerAndGroup) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  chmod(file_.c_str(), 0775);
  ExpectMessage(file_, "is not a PJRT plugin");  // the user's own group
  ASSERT_EQ(chown(file_.c_str(), 0, 12345), 0);
  ExpectMessage(file_, "writable by others in its group");
  chmod(file_.c_str(), 0755);
  ExpectMessage(file_, "is not a PJRT plugin");
  ASSERT_EQ(chown(file_.c_str(), 12345, 12345), 0);
  ExpectMessage(file_, "belongs to another user");
}

TEST(PluginAbiTest, Versions) {
  PJRT_Api api{};
  api.struct_size = sizeof(api);
  api.PJRT_Executable_OutputDimensions = [](PJRT_Executable_OutputDimensions_Args*) -> PJRT_Error* { return nullptr; };
  auto check = [&](int major, int minor) {
    api.pjrt_api_version.major_version = major;
    api.pjrt_api_version.minor_version = minor;
    return CheckPluginAbi("p.so", &api);
  };
  EXPECT_TRUE(check(0, 67).ok());
  EXPECT_TRUE(check(0, 200).ok());
  EXPECT_NE(check(0, 66).message().find("ABI 0.66 unsupported"), std::string::npos);
  EXPECT_NE(check(1, 90).message().find("ABI 1.90 unsupported"), std::string::npos);
  api.struct_size = offsetof(PJRT_Api, PJRT_Executable_OutputDimensions);
  EXPECT_FALSE(check(0, 90).ok());
}

TEST_F(PluginTest, LoadsOnceAndSilently) {
  const LoadedPlugin& loaded = TestPlugin();
  EXPECT_EQ(loaded.printed, "");
  EXPECT_EQ(Take(Plugin::Load(TestPluginPath())), loaded.plugin);
  const std::string link = TempDir() + "tpu_plugin_link.so";
  unlink(link.c_str());
  ASSERT_EQ(symlink(TestPluginPath().c_str(), link.c_str()), 0);
  EXPECT_EQ(Take(Plugin::Load(link)), loaded.plugin);
  unlink(link.c_str());
}

TEST_F(PluginTest, SaysWhatItIs) {
  const Plugin& plugin = *TestPlugin().plugin;
  EXPECT_GE(plugin.minor_version(), kMinAbiMinor);
  EXPECT_NE(plugin.attribute("stablehlo_current_version").find('.'), std::string::npos);
  EXPECT_FALSE(plugin.attribute("xla_version").empty());
  EXPECT_EQ(plugin.attribute("nonsense"), "");
  EXPECT_EQ(plugin.extension(999), nullptr);
  EXPECT_TRUE(plugin.Has(&PJRT_Api::PJRT_LoadedExecutable_Execute));
  if (TestPluginIsFake()) GTEST_SKIP() << "the fake plugin has no extensions";
  EXPECT_FALSE(plugin.extensions().empty());
  EXPECT_NE(plugin.extension(PJRT_Extension_Type_FFI), nullptr);
}

}  // namespace
}  // namespace tpu::pjrt
