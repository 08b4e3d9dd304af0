// SPDX-License-Identifier: Apache-2.0
#include "compile_options.h"

namespace fake_pjrt {
namespace {

// Walks the fields of one protobuf message.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  // False at the end and on damage.
  bool Next() {
    if (bytes_.empty() || damaged_) return false;
    uint64_t tag = Varint();
    field = static_cast<int>(tag >> 3);
    switch (tag & 7) {
      case 0:
        number = Varint();
        break;
      case 1:
        Take(8);
        break;
      case 2:
        text = Take(Varint());
        break;
      case 5:
        Take(4);
        break;
      default:
        damaged_ = true;
    }
    return !damaged_;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      auto byte = static_cast<uint8_t>(bytes_[0]);
      bytes_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    damaged_ = true;
    return 0;
  }
  bool done() const { return bytes_.empty(); }
  bool damaged() const { return damaged_; }

  int field = 0;
  uint64_t number = 0;
  std::string_view text;

 private:
  std::string_view Take(uint64_t n) {
    if (n > bytes_.size()) {
      damaged_ = true;
      return {};
    }
    std::string_view part = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return part;
  }
  std::string_view bytes_;
  bool damaged_ = false;
};

// xla.DeviceAssignmentProto: computation_devices (3) holds one list of replica_device_ids (1) a computation.
bool ReadAssignment(std::string_view bytes, std::vector<int64_t>* ids) {
  std::vector<std::vector<int64_t>> computations;
  Reader r(bytes);
  while (r.Next()) {
    if (r.field != 3) continue;
    computations.emplace_back();
    Reader c(r.text);
    while (c.Next()) {
      if (c.field != 1) continue;
      if (c.text.empty()) {
        computations.back().push_back(static_cast<int64_t>(c.number));
        continue;
      }
      Reader packed(c.text);
      while (!packed.done() && !packed.damaged()) computations.back().push_back(static_cast<int64_t>(packed.Varint()));
    }
    if (c.damaged()) return false;
  }
  for (size_t replica = 0; !computations.empty() && replica < computations[0].size(); ++replica)
    for (const auto& computation : computations) {
      if (computation.size() != computations[0].size()) return false;
      ids->push_back(computation[replica]);
    }
  return !r.damaged();
}

}  // namespace

Error ReadCompileOptions(std::string_view bytes, CompileOptions* options) {
  Reader r(bytes);
  bool ok = true, has_build_options = false;
  while (r.Next()) {
    if (r.field == 4) options->portable = r.number != 0;
    if (r.field != 3) continue;
    has_build_options = true;
    options->num_replicas = options->num_partitions = 0;
    Reader b(r.text);
    while (b.Next()) {
      if (b.field == 4) options->num_replicas = static_cast<int64_t>(b.number);
      if (b.field == 5) options->num_partitions = static_cast<int64_t>(b.number);
      if (b.field == 9) ok &= ReadAssignment(b.text, &options->device_ids);
    }
    ok &= !b.damaged();
  }
  if (!ok || r.damaged()) return Invalid("PJRT_Client_Compile: failed to deserialize CompileOptionsProto");
  if (!has_build_options) options->num_replicas = options->num_partitions = 0;
  if (options->num_replicas < 1 || options->num_partitions < 1)
    return Invalid("num_replicas and num_partitions must be positive");
  return {};
}

}  // namespace fake_pjrt
