// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<1024x1024xf32>, %i: tensor<1024x1024xi64>) -> tensor<1024x1024xf32> {
  %j = stablehlo.reshape %i : (tensor<1024x1024xi64>) -> tensor<1024x1024x1xi64>
  %r = "stablehlo.gather"(%x, %j) <{
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0],
      start_index_map = [1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>, indices_are_sorted = false}> : (tensor<1024x1024xf32>, tensor<1024x1024x1xi64>) -> tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}
