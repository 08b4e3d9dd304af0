// SPDX-License-Identifier: Apache-2.0
// Two writes into a fresh array.
func.func @main(%x: tensor<512x1024xf32>, %y: tensor<512x1024xf32>) -> tensor<1024x1024xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<512> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %a = stablehlo.pad %x, %zero, low = [0, 0], high = [512, 0], interior = [0, 0] : (tensor<512x1024xf32>, tensor<f32>) -> tensor<1024x1024xf32>
  %r = stablehlo.dynamic_update_slice %a, %y, %half, %none : (tensor<1024x1024xf32>, tensor<512x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}
