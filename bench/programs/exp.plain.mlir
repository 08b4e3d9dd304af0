// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %r = stablehlo.exponential %x : tensor<1048576xf32>
  return %r : tensor<1048576xf32>
}
