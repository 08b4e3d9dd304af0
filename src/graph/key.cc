// SPDX-License-Identifier: Apache-2.0
#include "graph/key.h"

#include <algorithm>

namespace tpu::graph {

void KeyWriter::Text(std::string_view s) {
  Add(static_cast<uint64_t>(Tag::kString) | static_cast<uint64_t>(s.size()) << 8);
  for (size_t i = 0; i < s.size(); i += 8) {
    uint64_t w = 0;
    std::memcpy(&w, s.data() + i, std::min<size_t>(8, s.size() - i));
    Add(w);
  }
}

void KeyWriter::Tensor(const View& v, const TensorType& base, const Access& a, int value, bool conj, bool neg) {
  bool slice = a.mode == AccessMode::kSlice;
  bool own_window = slice;
  if (slice) {
    TensorType seen = Reinterpret(base, v.dtype);
    own_window = seen.rank != a.window_rank;
    for (int j = 0; !own_window && j < seen.rank; ++j) own_window = seen.dims[j].size() != a.window[j];
  }
  Add(Header(a.mode, v.dtype, v.rank, base.dtype, base.rank, slice ? a.window_rank : 0, own_window, conj, neg, value));
  for (int i = 0; i < v.rank; ++i) Add(static_cast<uint64_t>(v.sizes[i]));
  if (a.mode == AccessMode::kWhole && v.dtype == base.dtype) return;
  for (int i = 0; i < v.rank; ++i) Add(static_cast<uint64_t>(v.strides[i]));
  for (Dim d : base) Add(d.bits());
  if (!slice) return;
  if (own_window)
    for (int j = 0; j < a.window_rank; ++j) Add(static_cast<uint64_t>(a.window[j]));
  for (int i = 0; i < v.rank; ++i) Add(static_cast<uint64_t>(a.step[i]) << 8 | static_cast<uint8_t>(a.map[i]));
}

namespace {

class Reader {
 public:
  Reader(const uint64_t* words, size_t size, Graph* graph) : w_(words), end_(words + size), graph_(graph) {}

  void Read() {
    numerics_ = Next();
    while (w_ < end_) ReadRecord();
  }

 private:
  uint64_t Next() {
    TPU_CHECK(w_ < end_);
    return *w_++;
  }

  void ReadRecord() {
    OpRecord r;
    r.numerics = numerics_;
    r.op = Next();
    uint64_t header = Next();
    TPU_CHECK(static_cast<Tag>(header & 0xff) == Tag::kRecord);
    int num_args = static_cast<int>(header >> 8 & 0xffffff), num_targets = static_cast<int>(header >> 32 & 0xffff);
    r.first_target_result = static_cast<int>(header >> 48);
    raw_ = 0;
    for (int i = 0; i < num_args; ++i) r.args.push_back(ReadArgument());
    for (int i = 0; i < num_targets; ++i) r.targets.push_back(ReadTarget(r));
    r.num_raw = raw_;
    graph_->records.push_back(std::move(r));
  }

  Argument ReadArgument() {
    Argument a;
    uint64_t w = Next();
    switch (static_cast<Tag>(w & 0xff)) {
      case Tag::kNone:
        break;
      case Tag::kTensor:
        a.kind = ArgKind::kTensor;
        a.tensors.push_back(ReadOperand(w));
        break;
      case Tag::kTensorList:
        a.kind = ArgKind::kTensorList;
        for (uint64_t n = w >> 8; n; --n) {
          uint64_t h = Next();
          a.tensors.push_back(static_cast<Tag>(h & 0xff) == Tag::kNone ? Operand() : ReadOperand(h));
        }
        break;
      case Tag::kHostTensor:
      case Tag::kScalar:
        a.kind = static_cast<Tag>(w & 0xff) == Tag::kScalar ? ArgKind::kScalar : ArgKind::kHostTensor;
        a.dtype = static_cast<DType>(w >> 8 & 0xff);
        if (a.kind == ArgKind::kScalar)
          a.scalar_class = static_cast<uint8_t>(w >> 16);
        else
          a.wrapped_number = w >> 16 & 1;
        if (!a.scalar_class) {
          a.raw = raw_;
          raw_ += IsComplex(a.dtype) ? 2 : 1;
        }
        break;
      case Tag::kInt:
        a.kind = ArgKind::kInt;
        a.i = static_cast<int64_t>(w) >> 8;
        break;
      case Tag::kBigInt:
        a.kind = ArgKind::kInt;
        a.i = static_cast<int64_t>(Next());
        break;
      case Tag::kDouble:
        a.kind = ArgKind::kDouble;
        a.d = NextDouble();
        break;
      case Tag::kBool:
        a.kind = ArgKind::kBool;
        a.i = static_cast<int64_t>(w >> 8);
        break;
      case Tag::kIntList:
      case Tag::kBoolList:
        a.kind = static_cast<Tag>(w & 0xff) == Tag::kIntList ? ArgKind::kIntList : ArgKind::kBoolList;
        for (uint64_t n = w >> 8; n; --n) a.ints.push_back(static_cast<int64_t>(Next()));
        break;
      case Tag::kDoubleList:
        a.kind = ArgKind::kDoubleList;
        for (uint64_t n = w >> 8; n; --n) a.doubles.push_back(NextDouble());
        break;
      case Tag::kString: {
        a.kind = ArgKind::kString;
        size_t n = w >> 8;
        a.text.resize((n + 7) / 8 * 8);
        for (size_t i = 0; i < n; i += 8) {
          uint64_t word = Next();
          std::memcpy(a.text.data() + i, &word, 8);
        }
        a.text.resize(n);
        break;
      }
      case Tag::kDType:
        a.kind = ArgKind::kDType;
        a.dtype = static_cast<DType>(w >> 8);
        break;
      default:
        TPU_CHECK(false && "unknown tag in a key");
    }
    return a;
  }

  double NextDouble() {
    uint64_t bits = Next();
    double d;
    std::memcpy(&d, &bits, 8);
    return d;
  }

  Operand ReadOperand(uint64_t h) {
    TPU_CHECK(static_cast<Tag>(h & 0xff) == Tag::kTensor);
    Operand o;
    o.access.mode = static_cast<AccessMode>(h >> 8 & 0xf);
    o.dtype = static_cast<DType>(h >> 12 & 0xff);
    o.rank = h >> 20 & 0xf;
    o.base.dtype = static_cast<DType>(h >> 24 & 0xff);
    int base_rank = h >> 32 & 0xf;
    o.access.window_rank = h >> 36 & 0xf;
    bool own_window = h >> 40 & 1;
    o.conj = h >> 41 & 1;
    o.neg = h >> 42 & 1;
    o.value = static_cast<int>(h >> 48);
    for (int i = 0; i < o.rank; ++i) o.sizes[i] = Dim::FromBits(Next());
    if (o.access.mode == AccessMode::kWhole && o.dtype == o.base.dtype) {
      int64_t s = 1;
      for (int i = o.rank - 1; i >= 0; --i) {
        o.strides[i] = s;
        s *= std::max<int64_t>(o.sizes[i].size(), 1);
      }
      for (int i = 0; i < o.rank; ++i) o.base.Append(o.sizes[i]);
    } else {
      for (int i = 0; i < o.rank; ++i) o.strides[i] = static_cast<int64_t>(Next());
      for (int i = 0; i < base_rank; ++i) o.base.Append(Dim::FromBits(Next()));
    }
    if (o.access.mode == AccessMode::kSlice) {
      TensorType seen = Reinterpret(o.base, o.dtype);
      for (int j = 0; j < o.access.window_rank; ++j)
        o.access.window[j] = own_window ? static_cast<int64_t>(Next()) : seen.dims[j].size();
      for (int i = 0; i < o.rank; ++i) {
        uint64_t w = Next();
        o.access.map[i] = static_cast<int8_t>(w & 0xff);
        o.access.step[i] = static_cast<int64_t>(w >> 8);
      }
    }
    int64_t sizes[kMaxRank];
    for (int i = 0; i < o.rank; ++i) sizes[i] = o.sizes[i].size();
    View view{o.dtype, o.rank, sizes, o.strides, 0};
    int starts = o.access.num_starts(view);
    if (starts) o.first_start = raw_;
    raw_ += starts;
    if (o.value >= static_cast<int>(graph_->arguments.size())) graph_->arguments.resize(o.value + 1);
    graph_->arguments[o.value] = o.base;
    return o;
  }

  Target ReadTarget(const OpRecord& r) {
    Target t;
    uint64_t w = Next();
    t.overwrites = w >> 24 & 1;
    if (static_cast<Tag>(w & 0xff) == Tag::kTargetArgument) {
      const Argument& a = r.args[w >> 8 & 0xffff];
      TPU_CHECK(a.kind == ArgKind::kTensor);
      t.operand = a.tensors[0];
    } else {
      TPU_CHECK(static_cast<Tag>(w & 0xff) == Tag::kTargetOperand);
      t.operand = ReadOperand(Next());
    }
    if (t.overwrites) {
      int64_t sizes[kMaxRank];
      for (int i = 0; i < t.operand.rank; ++i) sizes[i] = t.operand.sizes[i].size();
      View view{t.operand.dtype, t.operand.rank, sizes, t.operand.strides, 0};
      TPU_CHECK(CoversStorage(view, t.operand.type().bytes(), t.order));
    }
    return t;
  }

  const uint64_t* w_;
  const uint64_t* end_;
  Graph* graph_;
  uint64_t numerics_ = 0;
  int raw_ = 0;
};

}  // namespace

Graph Decode(const uint64_t* words, size_t size) {
  Graph g;
  Reader(words, size, &g).Read();
  return g;
}

}  // namespace tpu::graph
