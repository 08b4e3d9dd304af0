// SPDX-License-Identifier: Apache-2.0
#include "pjrt/compile_options.h"

#include <cstring>
#include <string_view>

#include "base/status.h"

namespace tpu::pjrt {
namespace {

// The four wire types of protobuf that the options need. Zero values are written too: oneof members must be.
class ProtoWriter {
 public:
  void Int(int field, int64_t value) {
    Tag(field, 0);
    Varint(static_cast<uint64_t>(value));
  }
  void Double(int field, double value) {
    Tag(field, 1);
    Raw(&value, sizeof(value));
  }
  void Float(int field, float value) {
    Tag(field, 5);
    Raw(&value, sizeof(value));
  }
  void Bytes(int field, std::string_view bytes) {
    Tag(field, 2);
    Varint(bytes.size());
    out_.append(bytes);
  }
  void PackedItem(int64_t value) { Varint(static_cast<uint64_t>(value)); }
  const std::string& bytes() const { return out_; }

 private:
  void Tag(int field, int wire) { Varint(static_cast<uint64_t>(field) << 3 | wire); }
  void Varint(uint64_t value) {
    while (value >= 0x80) {
      out_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out_.push_back(static_cast<char>(value));
  }
  void Raw(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }

  std::string out_;
};

std::string DeviceAssignmentProto(const CompileOptions& o) {
  ProtoWriter w;
  w.Int(1, o.num_replicas);
  w.Int(2, o.num_partitions);
  for (int p = 0; p < o.num_partitions; ++p) {
    ProtoWriter ids, computation;
    for (int r = 0; r < o.num_replicas; ++r) ids.PackedItem(o.device_assignment[r * o.num_partitions + p]);
    computation.Bytes(1, ids.bytes());
    w.Bytes(3, computation.bytes());
  }
  return w.bytes();
}

std::string BuildOptionsProto(const CompileOptions& o) {
  ProtoWriter w;
  w.Int(1, -1);  // device_ordinal: none
  w.Int(4, o.num_replicas);
  w.Int(5, o.num_partitions);
  if (o.use_spmd_partitioning) w.Int(6, 1);
  if (!o.device_assignment.empty()) w.Bytes(9, DeviceAssignmentProto(o));
  if (o.use_shardy_partitioner) w.Int(19, 1);
  if (o.exec_time_optimization_effort != 0) w.Float(20, o.exec_time_optimization_effort);
  if (o.memory_fitting_effort != 0) w.Float(21, o.memory_fitting_effort);
  return w.bytes();
}

std::string OverrideProto(const NamedOption& option) {
  ProtoWriter value, entry;
  if (auto* s = std::get_if<std::string>(&option.value)) value.Bytes(1, *s);
  if (auto* b = std::get_if<bool>(&option.value)) value.Int(2, *b);
  if (auto* i = std::get_if<int64_t>(&option.value)) value.Int(3, *i);
  if (auto* d = std::get_if<double>(&option.value)) value.Double(4, *d);
  entry.Bytes(1, option.name);
  entry.Bytes(2, value.bytes());
  return entry.bytes();
}

}  // namespace

std::string CompileOptions::Serialize() const {
  const size_t devices = static_cast<size_t>(num_replicas) * num_partitions;
  TPU_CHECK(device_assignment.empty() || device_assignment.size() == devices);
  TPU_CHECK(!portable || (devices == 1 && device_assignment.empty()));
  ProtoWriter w;
  w.Bytes(3, BuildOptionsProto(*this));
  if (portable) w.Int(4, 1);
  for (const NamedOption& option : overrides) w.Bytes(7, OverrideProto(option));
  return w.bytes();
}

}  // namespace tpu::pjrt
