// SPDX-License-Identifier: Apache-2.0
// One flat index of 32 bits into the flat operand.
func.func @main(%x: tensor<1024x1024xf32>, %i: tensor<1024x1024xi64>) -> tensor<1024x1024xf32> {
  %flat = stablehlo.reshape %x : (tensor<1024x1024xf32>) -> tensor<1048576xf32>
  %row = stablehlo.iota dim = 0 : tensor<1024x1024xi32>
  %width = stablehlo.constant dense<1024> : tensor<1024x1024xi32>
  %start = stablehlo.multiply %row, %width : tensor<1024x1024xi32>
  %narrow = stablehlo.convert %i : (tensor<1024x1024xi64>) -> tensor<1024x1024xi32>
  %at = stablehlo.add %start, %narrow : tensor<1024x1024xi32>
  %k = stablehlo.reshape %at : (tensor<1024x1024xi32>) -> tensor<1048576x1xi32>
  %g = "stablehlo.gather"(%flat, %k) <{
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1>, indices_are_sorted = false}> : (tensor<1048576xf32>, tensor<1048576x1xi32>) -> tensor<1048576xf32>
  %r = stablehlo.reshape %g : (tensor<1048576xf32>) -> tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}
