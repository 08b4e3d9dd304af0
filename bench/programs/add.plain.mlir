// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<1048576xf32>, %y: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %r = stablehlo.add %x, %y : tensor<1048576xf32>
  return %r : tensor<1048576xf32>
}
