// SPDX-License-Identifier: Apache-2.0
// A NaN reaches its whole row through the sum, so the maximum need not carry it.
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %d = stablehlo.subtract %x, %mb : tensor<1024x1024xf32>
  %e = stablehlo.exponential %d : tensor<1024x1024xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %one = stablehlo.constant dense<1.0> : tensor<1024xf32>
  %q = stablehlo.divide %one, %t : tensor<1024xf32>
  %tb = stablehlo.broadcast_in_dim %q, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %r = stablehlo.multiply %e, %tb : tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}
