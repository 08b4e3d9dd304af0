// SPDX-License-Identifier: Apache-2.0
// Two steps, columns first.
func.func @main(%x: tensor<1048576xf32>) -> tensor<f32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %a = stablehlo.reshape %x : (tensor<1048576xf32>) -> tensor<1024x1024xf32>
  %p = "stablehlo.reduce"(%a, %low) <{dimensions = array<i64: 0>}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %isnan = stablehlo.compare NE, %lhs, %lhs : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %greater = stablehlo.compare GT, %lhs, %rhs : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %left = stablehlo.or %isnan, %greater : tensor<i1>
    %larger = stablehlo.select %left, %lhs, %rhs : tensor<i1>, tensor<f32>
    stablehlo.return %larger : tensor<f32>
  }) : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %r = "stablehlo.reduce"(%p, %low) <{dimensions = array<i64: 0>}> ({
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %isnan = stablehlo.compare NE, %lhs, %lhs : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %greater = stablehlo.compare GT, %lhs, %rhs : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %left = stablehlo.or %isnan, %greater : tensor<i1>
    %larger = stablehlo.select %left, %lhs, %rhs : tensor<i1>, tensor<f32>
    stablehlo.return %larger : tensor<f32>
  }) : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
