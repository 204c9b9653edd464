// Stage 10 in a --mine program: a linear layer with weights and activations in blocks of Q8_0, one
// dot_q8_0 per product. Each weight is quantised when it is first needed.
#include <map>
#include <mutex>
#include <vector>

#include "course/mine/linear_way_ranks.h"
#include "operators/q8_0.h"

namespace stagecraft {
namespace {

// The rows of a matrix as blocks, one row after the other.
struct Quantized {
  std::size_t blocks_a_row = 0;
  std::vector<BlockQ8_0> blocks;

  void take(MatrixView<const float> matrix) {
    blocks_a_row = matrix.cols() / BlockQ8_0::kSize;
    blocks.resize(matrix.rows() * blocks_a_row);
    for (std::size_t r = 0; r < matrix.rows(); ++r) {
      quantize_q8_0(matrix.row(r), std::span(blocks).subspan(r * blocks_a_row, blocks_a_row));
    }
  }
  std::span<const BlockQ8_0> row(std::size_t r) const {
    return std::span(blocks).subspan(r * blocks_a_row, blocks_a_row);
  }
};

// A program opens one model and keeps it, so the address of a weight identifies it.
const Quantized& quantized(MatrixView<const float> weight) {
  static std::map<const float*, Quantized> all;
  const auto [found, is_new] = all.try_emplace(weight.data());
  if (is_new) found->second.take(weight);
  return found->second;
}

bool quantized_linear(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
                      ThreadPool& threads) {
  if (layer.weight.cols() % BlockQ8_0::kSize != 0) return false;
  // The glass box of the server calls this from its own thread, and all engines share the blocks.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const std::size_t outputs = layer.weight.rows();
  const auto bias = [&](std::size_t n) { return layer.bias.empty() ? 0.0f : layer.bias[n]; };
  const Quantized& weight = quantized(layer.weight);
  static Quantized input;  // grows to the longest prompt and is kept
  input.take(x);
  in_parts(threads, x.rows() * outputs * x.cols(), kTimesAsFast, [&](std::size_t part) {
    const std::size_t end = outputs * (part + 1) / threads.size();
    for (std::size_t n = outputs * part / threads.size(); n < end; ++n) {
      for (std::size_t t = 0; t < x.rows(); ++t) {
        y(t, n) = dot_q8_0(weight.row(n), input.row(t)) + bias(n);
      }
    }
  });
  return true;
}

[[maybe_unused]] const bool known = add_linear_way({kQuantized, quantized_linear});

}  // namespace
}  // namespace stagecraft
