// SPDX-License-Identifier: Apache-2.0
// The same bytes as a matrix: some engines split work by the outer dimension.
func.func @main(%x: tensor<1048576xf32>, %y: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %a = stablehlo.reshape %x : (tensor<1048576xf32>) -> tensor<1024x1024xf32>
  %b = stablehlo.reshape %y : (tensor<1048576xf32>) -> tensor<1024x1024xf32>
  %c = stablehlo.add %a, %b : tensor<1024x1024xf32>
  %r = stablehlo.reshape %c : (tensor<1024x1024xf32>) -> tensor<1048576xf32>
  return %r : tensor<1048576xf32>
}
