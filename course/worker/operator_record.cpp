#include "course/worker/operator_record.h"

namespace stagecraft::stages {
namespace {

std::map<const float*, Tensor>& results() {
  static std::map<const float*, Tensor> record;
  return record;
}

}  // namespace

void start_operator_record() { results().clear(); }

void record_operator(const float* weight, MatrixView<const float> made) {
  Tensor& tensor = results()[weight];
  const std::size_t rows_before = tensor.shape.empty() ? 0 : tensor.shape[0];
  tensor.shape = {rows_before + made.rows(), made.cols()};
  for (std::size_t r = 0; r < made.rows(); ++r) {
    tensor.values.insert(tensor.values.end(), made.row(r).begin(), made.row(r).end());
  }
}

void name_operators(const std::map<const float*, std::string>& steps, std::size_t rows,
                    Arguments& args) {
  for (const auto& [weight, name] : steps) {
    const auto found = results().find(weight);
    if (found == results().end() || found->second.shape[0] != rows) continue;
    const Tensor& tensor = found->second;
    args.record(name, MatrixView<const float>(tensor.values.data(), rows, tensor.shape[1]));
  }
}

}  // namespace stagecraft::stages
