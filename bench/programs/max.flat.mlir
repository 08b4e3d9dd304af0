// SPDX-License-Identifier: Apache-2.0
// A maximum that carries NaN, as torch's does.
func.func @main(%x: tensor<1048576xf32>) -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %r = "stablehlo.reduce"(%x, %low) <{dimensions = array<i64: 0>}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %isnan = stablehlo.compare NE, %lhs, %lhs : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %greater = stablehlo.compare GT, %lhs, %rhs : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %left = stablehlo.or %isnan, %greater : tensor<i1>
    %larger = stablehlo.select %left, %lhs, %rhs : tensor<i1>, tensor<f32>
    stablehlo.return %larger : tensor<f32>
  }) : (tensor<1048576xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
