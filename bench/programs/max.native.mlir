// SPDX-License-Identifier: Apache-2.0
// The engine's own maximum, which may lose NaN, and beside it a sum that is NaN only if an element is: x - x would make NaN of
// infinities, so NaN is marked first.
func.func @main(%x: tensor<1048576xf32>) -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
  %a = stablehlo.reshape %x : (tensor<1048576xf32>) -> tensor<1024x1024xf32>
  %b = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %bad = stablehlo.compare NE, %a, %a : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xi1>
  %c = stablehlo.reduce(%bad init: %no) applies stablehlo.or across dimensions = [1] : (tensor<1024x1024xi1>, tensor<i1>) -> tensor<1024xi1>
  %d = stablehlo.reduce(%b init: %low) applies stablehlo.maximum across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  %e = stablehlo.reduce(%c init: %no) applies stablehlo.or across dimensions = [0] : (tensor<1024xi1>, tensor<i1>) -> tensor<i1>
  %r = stablehlo.select %e, %nan, %d : tensor<i1>, tensor<f32>
  return %r : tensor<f32>
}
