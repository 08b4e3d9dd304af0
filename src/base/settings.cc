// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>

#include "base/log.h"

namespace tpu {
namespace {

struct Entry {
  const char* name;
  const char* choices;
  const char* help;
  std::string default_value;
  std::atomic<int64_t>* number;          // one of these two
  std::atomic<const std::string*>* text;
};

// Names that Google's torch-tpu reads: a "1" there is a value here, where our own name has not been set.
struct PeerName {
  const char* variable;
  const char* setting;
  const char* value;
};
constexpr PeerName kPeerNames[] = {
    {"TPU_LAUNCH_BLOCKING", "eager_mode", "debug"},
    {"TORCH_TPU_DEFER_AND_FUSE", "eager_mode", "fused"},
    {"TPU_DEFER_AND_FUSE", "eager_mode", "fused"},
};

// Readers on other threads may still hold a string that has been replaced: all are kept.
const std::string* Keep(const std::string& value) {
  static std::mutex mu;
  static auto* kept = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(mu);
  return &*kept->insert(value).first;
}

bool AllowedText(const std::string& value, const std::string& choices) {
  if (choices.empty()) return true;
  size_t begin = 0;
  while (begin <= choices.size()) {
    size_t end = std::min(choices.find('|', begin), choices.size());
    if (choices.compare(begin, end - begin, value) == 0) return true;
    begin = end + 1;
  }
  return false;
}

Status Assign(const Entry& e, const std::string& value) {
  if (e.text) {
    if (!AllowedText(value, e.choices))
      return {ErrorKind::kValue, std::string("setting ") + e.name + " must be one of " + e.choices + ", got \"" + value + "\""};
    e.text->store(Keep(value), std::memory_order_release);
    return {};
  }
  errno = 0;
  char* end = nullptr;
  long long n = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || *end || errno || n < 0)
    return {ErrorKind::kValue, std::string("setting ") + e.name + " must be a non-negative integer, got \"" + value + "\""};
  e.number->store(n, std::memory_order_release);
  return {};
}

std::vector<Entry> Entries(Settings& s) {
  std::vector<Entry> list;
#define TPU_INT(name, def, help) list.push_back({#name, "", help, std::to_string(def), &s.name, nullptr});
#define TPU_TEXT(name, def, choices, help) list.push_back({#name, choices, help, def, nullptr, &s.name});
  TPU_SETTINGS(TPU_INT, TPU_TEXT)
#undef TPU_INT
#undef TPU_TEXT
  return list;
}

std::string EnvName(const char* name) {
  std::string s = "TORCH_TPU_";
  for (; *name; ++name) s += static_cast<char>(std::toupper(static_cast<unsigned char>(*name)));
  return s;
}

}  // namespace

Settings& GetSettings() {
  static Settings* settings = [] {
    auto* s = new Settings;
    for (const Entry& e : Entries(*s)) {
      if (e.text) e.text->store(Keep(e.default_value));
      std::string value = ForeignEnv(EnvName(e.name).c_str());
      for (const PeerName& p : kPeerNames)
        if (value.empty() && std::string(e.name) == p.setting && ForeignEnv(p.variable) == "1") value = p.value;
      if (value.empty()) continue;
      // The log reads a setting itself, so the complaint goes around its level check.
      if (Status st = Assign(e, value); !st.ok()) WriteLogLine(EnvName(e.name) + ": " + st.message());
    }
    return s;
  }();
  return *settings;
}

std::vector<SettingInfo> ListSettings() {
  std::vector<SettingInfo> list;
  for (const Entry& e : Entries(GetSettings()))
    list.push_back({e.name, e.text ? *e.text->load() : std::to_string(e.number->load()), e.default_value, e.choices, e.help,
                    e.text == nullptr});
  return list;
}

Status SetSetting(const std::string& name, const std::string& value) {
  for (const Entry& e : Entries(GetSettings()))
    if (name == e.name) return Assign(e, value);
  return {ErrorKind::kValue, "no setting named \"" + name + "\""};
}

std::string ForeignEnv(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void SetForeignEnvDefault(const char* name, const char* value) { setenv(name, value, 0); }

}  // namespace tpu
