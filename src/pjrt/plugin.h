// SPDX-License-Identifier: Apache-2.0
// Plugin: a loaded PJRT plugin library.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pjrt/api.h"

namespace tpu::pjrt {

// The oldest PJRT ABI minor that is accepted (major is 0).
inline constexpr int kMinAbiMinor = 67;

// Immutable once loaded and never unloaded: plugins own threads. Thread rule: everything is thread-safe.
class Plugin {
 public:
  // Loads and initialises the plugin, or returns the one already loaded from the same file. Prints nothing, starts no
  // device. Sets the plugin's environment defaults first (log level; for libtpu without a TPU on the bus also the
  // variables without which it would hang).
  // A plugin is code, so the file must be safe from other users: a regular file owned by root or the effective user,
  // not writable by others, nor by a group other than the user's private one (gid == uid); none of the folders above
  // its real path may be writable by others without the sticky bit. Group-writable folders are fine: a file put there
  // by somebody else has another owner.
  static Result<const Plugin*> Load(const std::string& path);

  const PJRT_Api* api() const { return api_; }
  // The real path: symbolic links resolved.
  const std::string& path() const { return path_; }
  int minor_version() const { return api_->pjrt_api_version.minor_version; }

  struct Attribute {
    std::string name, value;
  };
  // What the plugin says of itself: xla_version, stablehlo_current_version ("1.13.3"), ...
  const std::vector<Attribute>& attributes() const { return attributes_; }
  // "" when there is none of that name.
  std::string attribute(std::string_view name) const;

  // The PJRT_Extension_Type numbers, in the plugin's order.
  const std::vector<int>& extensions() const { return extensions_; }
  // Null when there is none of that type.
  const PJRT_Extension_Base* extension(int type) const;

  // plugin.Has(&PJRT_Api::PJRT_Buffer_CopyRawToHost)
  template <class Function>
  bool Has(Function PJRT_Api::* slot) const {
    return HasSlot(api_, slot);
  }

 private:
  Plugin(std::string path, const PJRT_Api* api) : path_(std::move(path)), api_(api) {}
  static Result<const Plugin*> Open(const std::string& real_path);
  Status Initialize();

  std::string path_;
  const PJRT_Api* api_;
  std::vector<Attribute> attributes_;
  std::vector<int> extensions_;
};

}  // namespace tpu::pjrt
