// Stage 9 in a --mine program: a linear layer with matmul_packed. Each weight is packed when it is
// first needed, in one part per thread.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "course/mine/linear_way_ranks.h"
#include "operators/matmul_packed.h"

namespace stagecraft {
namespace {

using Parts = std::vector<PackedMatrix>;

// A program opens one model and keeps it, so the address of a weight identifies it.
Parts& parts_of(MatrixView<const float> weight, std::size_t n_threads) {
  static std::map<std::pair<const float*, std::size_t>, Parts> all;
  Parts& parts = all[{weight.data(), n_threads}];
  if (parts.empty()) {
    for (std::size_t part = 0; part < n_threads; ++part) {
      const std::size_t first = weight.rows() * part / n_threads;
      const std::size_t end = weight.rows() * (part + 1) / n_threads;
      parts.push_back(pack_b(weight.row_range(first, end - first)));
    }
  }
  return parts;
}

bool packed_linear(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
                   ThreadPool& threads) {
  // The glass box of the server calls this from its own thread, and all engines share the parts.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const std::size_t outputs = layer.weight.rows();
  const Parts& parts = parts_of(layer.weight, threads.size());
  in_parts(threads, x.rows() * outputs * x.cols(), kTimesAsFast, [&](std::size_t part) {
    const std::size_t first = outputs * part / parts.size();
    const auto out = y.col_range(first, parts[part].rows);
    matmul_packed(x, parts[part], out);
    if (layer.bias.empty()) return;
    const auto bias = layer.bias.subspan(first, out.cols());
    for (std::size_t t = 0; t < out.rows(); ++t) {
      std::ranges::transform(out.row(t), bias, out.row(t).begin(), std::plus<>());
    }
  });
  return true;
}

bool packed_head(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
                 ThreadPool& threads) {
  return layer.weight.rows() == head_rows && packed_linear(layer, x, y, threads);
}

[[maybe_unused]] const bool known =
    add_linear_way({kPackedHead, packed_head}) && add_linear_way({kPacked, packed_linear});

}  // namespace
}  // namespace stagecraft
