// linear() of a --mine program that has stage 9, 10 or 11 in it, in the place of model/linear.cpp.
// Stage 11 has all products where it is there.
//
// With both, stage 10 has the weights of the layers and stage 9 the head: the logits decide which
// token is chosen, so engines commonly keep the head at a higher precision (llama.cpp's Q4_K_M has
// it in Q6_K). Rows that are no whole number of blocks of 32 never go through stage 10. It hangs on
// the weight alone, so a text has the same bits in one pass and in many.
#include "model/linear.h"

#include <mutex>

#include "course/mine/ways.h"
#include "operators/check.h"
#include "operators/matmul_transb.h"
#include "operators/q8_0.h"

namespace stagecraft {
namespace {

void plain(const Linear& layer, MatrixView<const float> x, MatrixView<float> y) {
  matmul_transb(1.0f, x, layer.weight, 0.0f, y);
  if (layer.bias.empty()) return;
  for (std::size_t t = 0; t < y.rows(); ++t) {
    for (std::size_t n = 0; n < y.cols(); ++n) y(t, n) += layer.bias[n];
  }
}

}  // namespace

void linear(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
            ThreadPool& threads) {
  check_shape("linear", "x", x.rows(), layer.weight.cols(), x);
  check_shape("linear", "y", x.rows(), layer.weight.rows(), y);
  if (ways.gpu != nullptr) return ways.gpu(layer, x, y, threads);
  const bool in_blocks = layer.weight.cols() % BlockQ8_0::kSize == 0;
  const bool is_head = layer.weight.rows() == ways.head_rows;
  // The glass box of the server has an engine and a thread of its own, and stages 9 and 10 keep
  // what they make of a weight for all engines.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (ways.quantized != nullptr && in_blocks && !(is_head && ways.packed != nullptr)) {
    ways.quantized(layer, x, y, threads);
  } else if (ways.packed != nullptr) {
    ways.packed(layer, x, y, threads);
  } else {
    plain(layer, x, y);
  }
}

}  // namespace stagecraft
