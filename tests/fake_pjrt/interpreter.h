// SPDX-License-Identifier: Apache-2.0
// Runs a parsed module over host memory. One Interpreter a run; a Module may be run by many threads at once.
#pragma once
#include <vector>

#include "error.h"
#include "program.h"

namespace fake_pjrt {

class Interpreter {
 public:
  explicit Interpreter(const Module& module) : module_(module) {}

  // Requires: `args` of the function's argument types. Results may share memory with arguments and constants.
  Error Run(const Function& function, const std::vector<Tensor>& args, std::vector<Tensor>* results);

  // For operators with regions. The region sees the values of the enclosing function.
  Error RunRegion(const Region& region, const std::vector<Tensor>& args, std::vector<Tensor>* results);
  // Runs a region over scalars for a whole batch at once: every argument has dims {n}, and so has every result.
  Error RunScalarRegion(const Region& region, const std::vector<Tensor>& args, std::vector<Tensor>* results);
  Error Call(const std::string& function, const std::vector<Tensor>& args, std::vector<Tensor>* results);

  // The type of result `i` of an elementwise operator: as declared, or {n} inside a scalar region.
  Type ResultType(const Op& op, size_t i = 0) const {
    return batch_ < 0 ? op.result_types[i] : op.result_types[i].With(Dims{batch_});
  }

 private:
  const Module& module_;
  std::vector<Tensor> values_;  // by value id of the running function
  int64_t batch_ = -1;          // length of the batch inside RunScalarRegion
  int depth_ = 0;
};

}  // namespace fake_pjrt
