// SPDX-License-Identifier: Apache-2.0
#include "pjrt/plugin_checks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "pjrt/plugin.h"

namespace tpu::pjrt {
namespace {

Status Refuse(const std::string& path, const std::string& why, const std::string& advice) {
  return RuntimeError("PJRT plugin " + path + ": " + why + ". " + advice);
}

bool GroupIsPrivate(const struct stat& file) { return file.st_gid == geteuid(); }

Status CheckFile(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return Refuse(path, std::strerror(errno), "Make it readable.");
  if (!S_ISREG(file.st_mode))
    return Refuse(path, "is not a regular file", "Give the path of the plugin's shared library (.so).");
  if (file.st_uid != 0 && file.st_uid != geteuid())
    return Refuse(path, "belongs to another user (uid " + std::to_string(file.st_uid) + ")",
                  "Install the plugin yourself, or make root its owner.");
  if (file.st_mode & S_IWOTH) return Refuse(path, "is writable by others", "Run: chmod go-w " + path);
  if ((file.st_mode & S_IWGRP) && !GroupIsPrivate(file))
    return Refuse(path, "is writable by others in its group", "Run: chmod g-w " + path);
  return {};
}

Status CheckFolders(const std::string& path) {
  for (size_t slash = path.rfind('/'); slash != std::string::npos; slash = slash ? path.rfind('/', slash - 1) : slash) {
    const std::string folder = slash ? path.substr(0, slash) : "/";
    struct stat info;
    if (stat(folder.c_str(), &info) != 0) return Refuse(path, folder + ": " + std::strerror(errno), "Make it readable.");
    if ((info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX))
      return Refuse(path, "lies in " + folder + ", which is writable by others", "Run: chmod o-w " + folder);
    if (slash == 0) break;
  }
  return {};
}

}  // namespace

Result<std::string> CheckPluginFile(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (!resolved) {
    if (errno == ENOENT || errno == ENOTDIR)
      return Refuse(path, "no such file",
                    "Check the path (TORCH_TPU_PLUGIN_PATH), or install a plugin: pip install xla-cpu-pjrt");
    return Refuse(path, std::strerror(errno), "Check the path (TORCH_TPU_PLUGIN_PATH).");
  }
  std::string real(resolved);
  std::free(resolved);
  TPU_RETURN_IF_ERROR(CheckFile(real));
  TPU_RETURN_IF_ERROR(CheckFolders(real));
  return real;
}

Status CheckPluginAbi(const std::string& path, const PJRT_Api* api) {
  const PJRT_Api_Version& version = api->pjrt_api_version;
  // The last slot that is used without asking.
  const bool complete = HasSlot(api, &PJRT_Api::PJRT_Executable_OutputDimensions);
  if (version.major_version == 0 && version.minor_version >= kMinAbiMinor && complete) return {};
  return Refuse(path,
                "ABI " + std::to_string(version.major_version) + "." + std::to_string(version.minor_version) +
                    " unsupported, 0." + std::to_string(kMinAbiMinor) + " or newer (major version 0) is needed",
                "Install a plugin built from XLA of 2025-03 or later: pip install xla-cpu-pjrt");
}

}  // namespace tpu::pjrt
