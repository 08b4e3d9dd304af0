// SPDX-License-Identifier: Apache-2.0
// Strided views read and written inside programs: every access mode, with and without another element type.
#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using ViewAccessTest = LowerTest;
using graph::AccessMode;

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }

// The view's elements by ATen's definition.
std::vector<double> Expected(const HostTensor& base, const Geometry& g) {
  std::vector<double> out;
  int64_t n = 1;
  for (int64_t s : g.sizes) n *= s;
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = g.offset;
    for (size_t d = g.sizes.size(); d-- > 0;) {
      at += rest % g.sizes[d] * g.strides[d];
      rest /= g.sizes[d];
    }
    out.push_back(base.Get(at).real());
  }
  return out;
}

TensorType TypeOf(const Geometry& g) { return TensorType::Of(g.dtype, g.sizes); }

void CheckRead(const HostTensor& base, const Geometry& g, AccessMode mode) {
  RecordBuilder r("clone");
  r.View(base, g).None().Result(TypeOf(g));
  EXPECT_EQ(r.graph().records[0].args[0].tensors[0].access.mode, mode);
  ExpectValues(r.Run().results[0], Expected(base, g));
}

TEST_F(ViewAccessTest, Reads) {
  HostTensor base = HostTensor::Range(F32({4, 6}));
  CheckRead(base, {DType::kF32, {4, 6}, {6, 1}}, AccessMode::kWhole);
  CheckRead(base, {DType::kF32, {2, 12}, {12, 1}}, AccessMode::kReshape);
  CheckRead(base, {DType::kF32, {6, 4}, {1, 6}}, AccessMode::kSlice);
  CheckRead(base, {DType::kF32, {2, 3}, {12, 2}, 1}, AccessMode::kSlice);
  CheckRead(base, {DType::kF32, {6}, {1}, 18}, AccessMode::kSlice);
  CheckRead(base, {DType::kF32, {3, 4, 2}, {0, 6, 1}, 2}, AccessMode::kSlice);
  CheckRead(base, {DType::kF32, {3, 4}, {4, 1}, 2}, AccessMode::kFlat);
  CheckRead(base, {DType::kF32, {3, 3}, {5, 1}, 2}, AccessMode::kGather);
  CheckRead(base, {DType::kF32, {2, 3, 3}, {0, 5, 1}, 2}, AccessMode::kGather);
  CheckRead(base, {DType::kF32, {0, 3}, {3, 1}, 2}, AccessMode::kEmpty);
}

TEST_F(ViewAccessTest, AnOffsetIsNotInTheProgram) {
  HostTensor base = HostTensor::Range(F32({4, 6}));
  std::string text[2];
  for (int64_t i : {0, 1}) {
    auto lowered = RecordBuilder("clone").View(base, {DType::kF32, {6}, {1}, 6 * (i + 1)}).None().Result(F32({6})).Lower();
    ASSERT_TRUE(lowered.ok());
    text[i] = lowered->text;
  }
  EXPECT_EQ(text[0], text[1]);
}

// Writes 100, 101, ... through the view.
void CheckWrite(const HostTensor& base, const Geometry& g, AccessMode mode) {
  HostTensor update = HostTensor::Range(TypeOf(g));
  for (int64_t i = 0; i < update.type.numel(); ++i) update.Set(i, 100.0 + static_cast<double>(i));
  RecordBuilder r("clone");
  r.Tensor(update).None().Result(TypeOf(g)).Out(base, g);
  EXPECT_EQ(r.graph().records[0].targets[0].operand.access.mode, mode);
  HostTensor expected = base;
  for (int64_t i = 0; i < update.type.numel(); ++i) {
    int64_t rest = i, at = g.offset;
    for (size_t d = g.sizes.size(); d-- > 0;) {
      at += rest % g.sizes[d] * g.strides[d];
      rest /= g.sizes[d];
    }
    expected.Set(at, update.Get(i));
  }
  Outcome out = r.Run();
  ExpectValues(out.results[0], expected.Numbers());
}

TEST_F(ViewAccessTest, Writes) {
  HostTensor base = HostTensor::Range(F32({4, 6}));
  CheckWrite(base, {DType::kF32, {2, 6}, {6, 1}, 6}, AccessMode::kSlice);
  CheckWrite(base, {DType::kF32, {6, 2}, {1, 6}, 12}, AccessMode::kSlice);
  CheckWrite(base, {DType::kF32, {2, 3}, {12, 2}, 1}, AccessMode::kSlice);
  CheckWrite(base, {DType::kF32, {4}, {6}, 5}, AccessMode::kSlice);
  CheckWrite(base, {DType::kF32, {3, 4}, {4, 1}, 2}, AccessMode::kFlat);
  CheckWrite(base, {DType::kF32, {3, 3}, {5, 1}, 2}, AccessMode::kGather);
  CheckWrite(base, {DType::kF32, {0}, {1}, 2}, AccessMode::kEmpty);
}

TEST_F(ViewAccessTest, FullOverwriteTakesTheViewsOrder) {
  HostTensor base = HostTensor::Range(F32({4, 6})), update = HostTensor::Range(F32({6, 4}));
  Outcome out = RecordBuilder("clone").Tensor(update).None().Result(F32({6, 4})).Out(base, {DType::kF32, {6, 4}, {1, 6}}).Run();
  EXPECT_EQ(out.results[0].type, F32({4, 6}));
  EXPECT_EQ(out.lowered.arguments.size(), 1u);  // the old base is not read
  EXPECT_EQ(out.results[0].Get(1).real(), 4);
}

TEST_F(ViewAccessTest, ReadsOtherElementTypes) {
  HostTensor floats = HostTensor::Of(F32({2, 2}), {1, -2, 0.5, 3});
  auto read = [&](const HostTensor& base, DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    TensorType type = TensorType::Of(dtype, sizes);
    return RecordBuilder("clone").View(base, {dtype, sizes, strides}).None().Result(type).Run().results[0];
  };
  EXPECT_EQ(read(floats, DType::kI32, {2, 2}, {2, 1}).bytes, floats.bytes);
  EXPECT_EQ(read(floats, DType::kU8, {2, 8}, {8, 1}).bytes, floats.bytes);
  EXPECT_EQ(read(floats, DType::kF64, {2, 1}, {1, 1}).bytes, floats.bytes);
  EXPECT_EQ(read(floats, DType::kC64, {2, 1}, {1, 1}).bytes, floats.bytes);
  EXPECT_EQ(read(floats, DType::kC128, {1}, {1}).bytes, floats.bytes);
  HostTensor complex = HostTensor::OfComplex(TensorType(DType::kC64, {2}), {{1, 2}, {3, -4}});
  EXPECT_EQ(read(complex, DType::kF32, {2, 2}, {2, 1}).bytes, complex.bytes);
  EXPECT_EQ(read(complex, DType::kI16, {8}, {1}).bytes, complex.bytes);
  HostTensor flags = HostTensor::Of(TensorType(DType::kBool, {4}), {1, 0, 0, 1});
  EXPECT_EQ(read(flags, DType::kU8, {4}, {1}).bytes, flags.bytes);
  ExpectValues(read(HostTensor::Of(TensorType(DType::kU8, {3}), {0, 2, 255}), DType::kBool, {3}, {1}), {0, 1, 1});
}

TEST_F(ViewAccessTest, WritesOtherElementTypes) {
  HostTensor base = HostTensor::OfComplex(TensorType(DType::kC64, {3}), {{1, 2}, {3, 4}, {5, 6}});
  HostTensor update = HostTensor::Of(F32({3}), {7, 8, 9});
  // The imaginary parts.
  Outcome out = RecordBuilder("clone").Tensor(update).None().Result(F32({3})).Out(base, {DType::kF32, {3}, {2}, 1}).Run();
  EXPECT_EQ(out.results[0].type, F32({6}));
  ExpectValues(out.results[0], {1, 7, 3, 8, 5, 9});
}

TEST_F(ViewAccessTest, AppliesConjAndNeg) {
  HostTensor base = HostTensor::OfComplex(TensorType(DType::kC64, {2}), {{1, 2}, {3, -4}});
  Geometry whole{DType::kC64, {2}, {1}};
  HostTensor conj = RecordBuilder("clone").View(base, whole).Conj().None().Result(base.type).Run().results[0];
  EXPECT_EQ(conj.Get(0), std::complex<double>(1, -2));
  HostTensor both = RecordBuilder("clone").View(base, whole).Conj().Neg().None().Result(base.type).Run().results[0];
  EXPECT_EQ(both.Get(1), std::complex<double>(-3, -4));
}

}  // namespace
}  // namespace tpu::lower
