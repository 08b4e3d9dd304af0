// SPDX-License-Identifier: Apache-2.0
// Images: tensors [N, C, spatial...] whose memory may have the features last.
#pragma once
#include "lower/parts.h"

namespace tpu::lower {

// A tensor [N, C, spatial...] and whether its memory has the features last (torch.channels_last): moving features to
// where they are already costs nothing.
struct Image {
  Value value;
  bool features_last = false;
};

// Operand i as an image of this type.
Image ImageOf(Lowering& l, int i, DType dtype);
// Whether result k goes out with its features last.
bool ResultFeaturesLast(const Lowering& l, int k);
// [N, C, spatial...] to [N, spatial..., C] and back.
Value FeaturesToEnd(Builder& b, const Image& x);
Value FeaturesFromEnd(Builder& b, Value x, bool last);

}  // namespace tpu::lower
