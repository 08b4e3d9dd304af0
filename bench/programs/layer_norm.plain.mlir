// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<1024x1024xf32>, %w: tensor<1024xf32>, %b: tensor<1024xf32>) -> tensor<1024x1024xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<9.765625E-4> : tensor<1024xf32>
  %eps = stablehlo.constant dense<1.0E-5> : tensor<1024xf32>
  %s1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %mean = stablehlo.multiply %s1, %n : tensor<1024xf32>
  %mb = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %c = stablehlo.subtract %x, %mb : tensor<1024x1024xf32>
  %sq = stablehlo.multiply %c, %c : tensor<1024x1024xf32>
  %s2 = stablehlo.reduce(%sq init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %var = stablehlo.multiply %s2, %n : tensor<1024xf32>
  %ve = stablehlo.add %var, %eps : tensor<1024xf32>
  %rs = stablehlo.rsqrt %ve : tensor<1024xf32>
  %rsb = stablehlo.broadcast_in_dim %rs, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %wb = stablehlo.broadcast_in_dim %w, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %g = stablehlo.multiply %c, %rsb : tensor<1024x1024xf32>
  %h = stablehlo.multiply %g, %wb : tensor<1024x1024xf32>
  %r = stablehlo.add %h, %bb : tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}
