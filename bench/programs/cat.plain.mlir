// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<512x1024xf32>, %y: tensor<512x1024xf32>) -> tensor<1024x1024xf32> {
  %r = stablehlo.concatenate %x, %y, dim = 0 : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}
