// SPDX-License-Identifier: Apache-2.0
func.func @main(%c: tensor<1048576xi1>, %x: tensor<1048576xf32>, %y: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %r = stablehlo.select %c, %x, %y : tensor<1048576xi1>, tensor<1048576xf32>
  return %r : tensor<1048576xf32>
}
