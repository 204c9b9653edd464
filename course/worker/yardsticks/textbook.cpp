// The loops of the textbook, compiled without SIMD. The calls "nothing" leave the product out: they
// measure the time that a worker spends on everything else.
#include <bit>

#include "course/worker/calls.h"
#include "course/worker/chain.h"
#include "operators/q8_0.h"

namespace stagecraft::stages {
namespace {

void multiply(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < a.cols(); ++k) sum += a(m, k) * b(n, k);
      c(m, n) = sum;
    }
  }
}

float half(std::uint16_t bits) {
  const float size = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  return (bits & 0x8000u) != 0 ? -size : size;
}

void call_textbook(Arguments& args) {
  const auto noise = args.vector("noise");
  const auto b = args.matrix("b");
  run_chain(args, noise, b.cols(),
            [&](MatrixView<const float> a, MatrixView<float> c) { multiply(a, b, c); });
}

void call_nothing(Arguments& args) {
  const auto noise = args.vector("noise");
  const auto b = args.matrix("b");
  run_chain(args, noise, b.cols(), [](MatrixView<const float>, MatrixView<float>) {});
}

// The same with integers: the weight [width, width] is in blocks of Q8_0. Our function quantises
// the one row of activations, a small part of the work.
void call_textbook_of_bytes(Arguments& args) {
  const auto noise = args.vector("noise");
  const auto scales = args.vector("b scales");
  const auto q = args.vector("b q");
  const std::size_t width = args.size("width");
  const std::vector<std::int8_t> weight(q.begin(), q.end());
  std::vector<float> scale;
  for (const float bits : scales) scale.push_back(half(static_cast<std::uint16_t>(bits)));
  std::vector<BlockQ8_0> x(width / BlockQ8_0::kSize);
  run_chain(args, noise, width, [&](MatrixView<const float> a, MatrixView<float> c) {
    quantize_q8_0(a.row(0), x);
    for (std::size_t row = 0; row < width; ++row) {
      float sum = 0.0f;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t block = row * x.size() + i;
        int whole = 0;
        for (std::size_t j = 0; j < BlockQ8_0::kSize; ++j) {
          whole += weight[block * BlockQ8_0::kSize + j] * x[i].q[j];
        }
        sum += scale[block] * half(x[i].scale) * static_cast<float>(whole);
      }
      c(0, row) = sum;
    }
  });
}

// Converting the request's numbers to bytes takes time, too.
void call_nothing_of_bytes(Arguments& args) {
  const auto noise = args.vector("noise");
  const auto q = args.vector("b q");
  const std::vector<std::int8_t> weight(q.begin(), q.end());
  run_chain(args, noise, args.size("width"), [](MatrixView<const float>, MatrixView<float>) {});
}

const Callable kTextbookCalls{{"textbook, again and again", call_textbook},
                              {"textbook of bytes, again and again", call_textbook_of_bytes},
                              {"nothing of bytes, again and again", call_nothing_of_bytes},
                              {"nothing, again and again", call_nothing}};

}  // namespace

}  // namespace stagecraft::stages
