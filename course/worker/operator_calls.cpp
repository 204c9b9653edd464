#include <algorithm>

#include "course/worker/calls.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/half_to_float.h"
#include "operators/matmul_transb.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"
#include "operators/silu.h"
#include "operators/softmax.h"
#include "operators/swiglu.h"

namespace stagecraft::stages {
namespace {

void call_add(Arguments& args) {
  const auto x = args.matrix("x");
  add(x, args.in_out("y"));
}

void call_silu(Arguments& args) {
  const auto x = args.vector("x");
  silu(x, args.out_vector("y", x.size()));
}

void call_swiglu(Arguments& args) {
  const auto gate = args.vector("gate");
  const auto up = args.vector("up");
  swiglu(gate, up, args.out_vector("y", gate.size()));
}

void call_rms_norm(Arguments& args) {
  const auto x = args.matrix("x");
  const auto weight = args.vector("weight");
  const float eps = static_cast<float>(args.scalar("eps"));
  rms_norm(x, weight, eps, args.out_matrix("y", x.rows(), x.cols()));
  if (!args.has("each row alone")) return;
  const auto alone = args.out_matrix("alone", x.rows(), x.cols());
  for (std::size_t r = 0; r < x.rows(); ++r) {
    rms_norm(x.row_range(r, 1), weight, eps, alone.row_range(r, 1));
  }
}

void call_matmul_transb(Arguments& args) {
  const auto a = args.matrix("a");
  const auto b = args.matrix("b");
  const float alpha = static_cast<float>(args.scalar("alpha"));
  const float beta = static_cast<float>(args.scalar("beta"));
  matmul_transb(alpha, a, b, beta, args.in_out("c"));
  if (!args.has("each row alone")) return;
  const auto alone = args.out_matrix("alone", a.rows(), b.rows());
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      const auto element = alone.row_range(m, 1).col_range(n, 1);
      matmul_transb(alpha, a.row_range(m, 1), b.row_range(n, 1), 0.0f, element);
    }
  }
}

void call_softmax(Arguments& args) {
  const auto x = args.matrix("x");
  const auto y = args.out_matrix("y", x.rows(), x.cols());
  for (std::size_t r = 0; r < x.rows(); ++r) softmax(x.row(r), y.row(r));
}

void call_rope(Arguments& args) {
  const auto inv_freq = args.vector("inv_freq");
  rope(args.in_out("x"), inv_freq, args.size("first_position"));
}

void call_attention(Arguments& args) {
  const auto q = args.matrix("q");
  const auto k = args.matrix("k");
  const auto v = args.matrix("v");
  const AttentionShape shape{args.size("n_heads"), args.size("n_kv_heads"), args.size("head_dim"),
                             args.size("window")};
  const auto probabilities = args.out_matrix("probabilities", shape.n_heads * q.rows(), k.rows());
  attention(q, k, v, shape, probabilities, args.out_matrix("out", q.rows(), q.cols()));
  if (!args.has("each row alone")) return;
  // Each row without those before it, so that the positions stay the same; the last one alone.
  const auto alone = args.out_matrix("alone", q.rows(), q.cols());
  Matrix<float> scratch(probabilities.rows(), k.rows());
  Matrix<float> out(q.rows(), q.cols());
  for (std::size_t r = 0; r < q.rows(); ++r) {
    const std::size_t rows = q.rows() - r;
    attention(q.row_range(r, rows), k, v, shape, scratch.top_rows(shape.n_heads * rows),
              out.top_rows(rows));
    std::ranges::copy(out.view().row(0), alone.row(r).begin());
  }
}

// The bits of half-precision numbers are sent as whole numbers, which f32 holds exactly.
void call_to_f32(Arguments& args,
                 void (*to_f32)(std::span<const std::uint16_t>, std::span<float>)) {
  const auto numbers = args.vector("bits");
  std::vector<std::uint16_t> bits;
  for (const float number : numbers) bits.push_back(static_cast<std::uint16_t>(number));
  to_f32(bits, args.out_vector("out", bits.size()));
}

const Callable kOperatorCalls{
    {"add", call_add},
    {"silu", call_silu},
    {"swiglu", call_swiglu},
    {"rms_norm", call_rms_norm},
    {"matmul_transb", call_matmul_transb},
    {"softmax", call_softmax},
    {"rope", call_rope},
    {"attention", call_attention},
    {"bf16_to_f32", [](Arguments& args) { call_to_f32(args, bf16_to_f32); }},
    {"f16_to_f32", [](Arguments& args) { call_to_f32(args, f16_to_f32); }},
};

}  // namespace

}  // namespace stagecraft::stages
