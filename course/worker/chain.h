#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "course/worker/arguments.h"
#include "operators/q8_0.h"

namespace stagecraft::stages {

// The work of a worker while its speed is measured: products, each of which needs the previous one,
// as with the tokens of a story. So none can be left out, done in advance or looked up:
//   A_0[r][k] = noise
//   A_i[r][k] = noise + |C_i-1[r][k]| / 32, with other noise in each row and step
//   C_i       = A_i * B^T, B being [k, k]
// The outputs are the last C and the sum of all C. The noise of a step is the sum of two parts of
// the request's numbers. Each part begins anew after about kNoise steps, their sum after kNoise^2:
// a cycle of inputs would give a cycle of outputs, because a step keeps little of the one before.
inline constexpr std::size_t kNoise = 16384;  // numbers of noise, from the request

inline void next_input(std::span<const float> noise, std::size_t step, MatrixView<const float> c,
                       MatrixView<float> a) {
  for (std::size_t r = 0; r < a.rows(); ++r) {
    const float* from = noise.data() + (step * 61 + r * 17) % (noise.size() - a.cols());
    const float* other = noise.data() + (step * 67 + r * 29) % (noise.size() - a.cols() - 1);
    const float* before = c.row(r).data();
    float* to = a.row(r).data();
    for (std::size_t k = 0; k < a.cols(); ++k) {
      to[k] = from[k] + other[k] + std::fabs(before[k]) * 0x1p-5f;
    }
  }
}

// Changes the sign of one number of the blocks; `drawn` says which. A copy made of them earlier is
// then wrong, and only code that reads all of them notices which number changed. (Without a
// division, which would take as long as a dot product.)
inline void change_a_number(std::span<BlockQ8_0> blocks, std::uint32_t drawn) {
  std::int8_t& number =
      blocks[(std::uint64_t{drawn} * blocks.size()) >> 32].q[drawn / 64 % BlockQ8_0::kSize];
  number = static_cast<std::int8_t>(-number);
}

// Computes the chain that a request describes. Inputs: "b" [k, k] and "noise"; scalars: "rows" and
// "steps". Calls multiply(a, c) for each product.
template <class Multiply>
void run_chain(Arguments& args, std::span<const float> noise, std::size_t width,
               Multiply multiply) {
  Matrix<float> a(args.size("rows"), width);
  Matrix<float> c(args.size("rows"), width);
  std::vector<double> sum(args.size("rows") * width, 0.0);
  for (std::size_t step = 0; step < args.size("steps"); ++step) {
    next_input(noise, step, c.view(), a.view());
    multiply(std::as_const(a).view(), c.view());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(c.data()[i]);
  }
  args.record("last", std::as_const(c).view());
  const std::vector<float> rounded(sum.begin(), sum.end());
  args.record("sum", MatrixView<const float>(rounded.data(), c.rows(), width));
}

// C = A * B^T with one row, and B in blocks: quantises the row to x, then calls dot(row of B, x). A
// number of B changes before each step, and a number of x before each call.
template <class Dot>
void multiply_blocks(std::span<BlockQ8_0> b, std::span<const float> noise, std::size_t step,
                     std::span<const float> a, std::span<BlockQ8_0> x, std::span<float> c,
                     Dot dot) {
  auto drawn = std::bit_cast<std::uint32_t>(noise[step % noise.size()]) * 2654435761u;
  change_a_number(b, drawn);
  quantize_q8_0(a, x);
  for (std::size_t row = 0; row < c.size(); ++row) {
    drawn = drawn * 1664525u + 1013904223u;
    change_a_number(x, drawn);
    c[row] = dot(b.subspan(row * x.size(), x.size()), x);
  }
}

// run_chain with B in blocks.
template <class Dot>
void run_chain_of_blocks(Arguments& args, std::span<BlockQ8_0> b, Dot dot) {
  const auto noise = args.vector("noise");
  const std::size_t width = args.size("width");
  std::vector<BlockQ8_0> x(width / BlockQ8_0::kSize);
  std::size_t step = 0;
  run_chain(args, noise, width, [&](MatrixView<const float> a, MatrixView<float> c) {
    multiply_blocks(b, noise, step++, a.row(0), x, c.row(0), dot);
  });
}

}  // namespace stagecraft::stages
