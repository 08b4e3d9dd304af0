// SPDX-License-Identifier: Apache-2.0
// As a product with ones: the engine's matrix library does the adding.
func.func @main(%x: tensor<1048576xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %ones = stablehlo.constant dense<1.0> : tensor<1024xf32>
  %a = stablehlo.reshape %x : (tensor<1048576xf32>) -> tensor<1024x1024xf32>
  %b = stablehlo.dot_general %a, %ones, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %r = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
