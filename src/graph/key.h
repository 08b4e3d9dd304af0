// SPDX-License-Identifier: Apache-2.0
// The relative form of records as 64-bit words. The words are at once the cache key and the whole structural input of
// lowering: a Graph is decoded from them and from nothing else, so a cached program cannot depend on something that the
// key leaves out. What is left out on purpose: device index, requires_grad, addresses, storage offsets (start indices),
// run-time scalars, liveness and donation.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "base/inline_vector.h"
#include "graph/op_record.h"

namespace tpu::graph {

// Append only: part of the key format.
enum class Tag : uint8_t {
  kNone,
  kTensor,
  kTensorList,
  kHostTensor,
  kScalar,
  kInt,
  kBigInt,
  kDouble,
  kBool,
  kIntList,
  kDoubleList,
  kBoolList,
  kString,
  kDType,
  kRecord,
  kTargetArgument,
  kTargetOperand,
};

class KeyWriter {
 public:
  // The first word of a graph.
  void Numerics(uint64_t word) { Add(word); }
  void Record(uint64_t op, int num_args, int num_targets, int first_target_result = 0) {
    Add(op);
    Add(static_cast<uint64_t>(Tag::kRecord) | static_cast<uint64_t>(num_args) << 8 |
        static_cast<uint64_t>(static_cast<uint16_t>(num_targets)) << 32 | static_cast<uint64_t>(first_target_result) << 48);
  }
  void None() { Add(static_cast<uint64_t>(Tag::kNone)); }
  void ListHeader(Tag tag, size_t n) { Add(static_cast<uint64_t>(tag) | static_cast<uint64_t>(n) << 8); }
  void Int(int64_t v) {
    if (v == (v << 8) >> 8) {
      Add(static_cast<uint64_t>(Tag::kInt) | static_cast<uint64_t>(v) << 8);
    } else {
      Add(static_cast<uint64_t>(Tag::kBigInt));
      Add(static_cast<uint64_t>(v));
    }
  }
  void Bool(bool v) { Add(static_cast<uint64_t>(Tag::kBool) | static_cast<uint64_t>(v) << 8); }
  void Double(double v) {
    Add(static_cast<uint64_t>(Tag::kDouble));
    Word(v);
  }
  void DTypeArg(DType d) { Add(static_cast<uint64_t>(Tag::kDType) | static_cast<uint64_t>(d) << 8); }
  void Scalar(DType kind, uint8_t scalar_class) {
    Add(static_cast<uint64_t>(Tag::kScalar) | static_cast<uint64_t>(kind) << 8 | static_cast<uint64_t>(scalar_class) << 16);
  }
  void HostTensor(DType dtype, bool wrapped) {
    Add(static_cast<uint64_t>(Tag::kHostTensor) | static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(wrapped) << 16);
  }
  void Text(std::string_view s);
  void Word(double v) {
    uint64_t bits;
    static_assert(sizeof bits == sizeof v);
    __builtin_memcpy(&bits, &v, sizeof bits);
    Add(bits);
  }
  void Word(int64_t v) { Add(static_cast<uint64_t>(v)); }

  // A tensor that is its base value, of the same dtype: the short form.
  void WholeTensor(const TensorType& base, int value, bool conj, bool neg) {
    Add(Header(AccessMode::kWhole, base.dtype, base.rank, base.dtype, base.rank, 0, false, conj, neg, value));
    for (Dim d : base) Add(d.bits());
  }
  void Tensor(const View& view, const TensorType& base, const Access& access, int value, bool conj, bool neg);

  // Result k goes to the tensor that is argument `argument` (in-place).
  void TargetArgument(int argument, bool overwrites) {
    Add(static_cast<uint64_t>(Tag::kTargetArgument) | static_cast<uint64_t>(argument) << 8 |
        static_cast<uint64_t>(overwrites) << 24);
  }
  // Result k goes to the operand whose words follow (out=).
  void TargetOperand(bool overwrites) {
    Add(static_cast<uint64_t>(Tag::kTargetOperand) | static_cast<uint64_t>(overwrites) << 24);
  }

  Fingerprint fingerprint() const { return hasher_.Finish(); }
  const uint64_t* words() const { return words_.data(); }
  size_t size() const { return words_.size(); }

 private:
  static uint64_t Header(AccessMode mode, DType dtype, int rank, DType base_dtype, int base_rank, int window_rank,
                         bool own_window, bool conj, bool neg, int value) {
    return static_cast<uint64_t>(Tag::kTensor) | static_cast<uint64_t>(mode) << 8 | static_cast<uint64_t>(dtype) << 12 |
           static_cast<uint64_t>(rank) << 20 | static_cast<uint64_t>(base_dtype) << 24 |
           static_cast<uint64_t>(base_rank) << 32 | static_cast<uint64_t>(window_rank) << 36 |
           static_cast<uint64_t>(own_window) << 40 | static_cast<uint64_t>(conj) << 41 | static_cast<uint64_t>(neg) << 42 |
           static_cast<uint64_t>(static_cast<uint16_t>(value)) << 48;
  }
  void Add(uint64_t word) {
    words_.push_back(word);
    hasher_.Add(word);
  }

  InlineVector<uint64_t, 96> words_;
  Hasher hasher_;
};

// The graph that the words describe, with argument types; results are left empty.
// Requires: words written by a KeyWriter.
Graph Decode(const uint64_t* words, size_t size);

}  // namespace tpu::graph
