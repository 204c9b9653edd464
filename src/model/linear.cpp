#include "model/linear.h"

#include <algorithm>

#include "model/linear_ways.h"
#include "operators/check.h"
#include "operators/matmul_transb.h"

namespace stagecraft {
namespace {

void linear_slice(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
                  std::size_t first, std::size_t count) {
  const auto weight = layer.weight.row_range(first, count);
  const auto out = y.col_range(first, count);
  if (layer.bias.empty()) {
    matmul_transb(1.0f, x, weight, 0.0f, out);
    return;
  }
  const auto bias = layer.bias.subspan(first, count);
  for (std::size_t t = 0; t < out.rows(); ++t) {
    std::copy(bias.begin(), bias.end(), out.row(t).begin());
  }
  matmul_transb(1.0f, x, weight, 1.0f, out);
}

}  // namespace

void linear(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
            ThreadPool& threads) {
  const std::size_t outputs = layer.weight.rows();
  check_shape("linear", "x", x.rows(), layer.weight.cols(), x);
  check_shape("linear", "y", x.rows(), outputs, y);
  for (const LinearWay& way : linear_ways) {
    if (way.compute(layer, x, y, threads)) return;
  }
  in_parts(threads, x.rows() * outputs * x.cols(), 1, [&](std::size_t part) {
    const std::size_t first = outputs * part / threads.size();
    const std::size_t end = outputs * (part + 1) / threads.size();
    if (first < end) linear_slice(layer, x, y, first, end - first);
  });
}

}  // namespace stagecraft
