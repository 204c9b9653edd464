#include "tests/gates/twins.h"

#include <cmath>

namespace stagecraft::stages {
namespace {

constexpr double kUlp = 0x1p-24;        // half a unit in the last place, relative
constexpr double kSmallest = 0x1p-126;  // below this, f32 loses bits

// silu is 3e-37 where exp(-x) overflows f32 (x = -88.7), so from there on 0 is right too.
constexpr double kSiluVanishes = 1e-36;

double silu(double x) { return x / (1.0 + std::exp(-x)); }

}  // namespace

Expected twin_add(const Tensor& x, const Tensor& y) {
  Expected e{y.shape, {}, {}};
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    e.values.push_back(static_cast<double>(x.values[i]) + y.values[i]);
    e.allowed.push_back(kUlp * std::fabs(e.values[i]) + kSmallest);
  }
  return e;
}

Expected twin_silu(const Tensor& x) {
  Expected e{x.shape, {}, {}};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    e.values.push_back(silu(x.values[i]));
    e.allowed.push_back(16 * kUlp * std::fabs(e.values[i]) + kSiluVanishes);
  }
  return e;
}

Expected twin_swiglu(const Tensor& gate, const Tensor& up) {
  Expected e{gate.shape, {}, {}};
  for (std::size_t i = 0; i < gate.values.size(); ++i) {
    e.values.push_back(silu(gate.values[i]) * up.values[i]);
    const double vanishes = kSiluVanishes * (1.0 + std::fabs(up.values[i]));
    e.allowed.push_back(20 * kUlp * std::fabs(e.values[i]) + vanishes);
  }
  return e;
}

Expected twin_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  Expected e{x.shape, {}, {}};
  const std::size_t dim = x.cols();
  for (std::size_t t = 0; t < x.rows(); ++t) {
    double squares = 0.0;
    for (std::size_t i = 0; i < dim; ++i) squares += std::pow(x.values[t * dim + i], 2);
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(dim) + eps);
    for (std::size_t i = 0; i < dim; ++i) {
      e.values.push_back(weight.values[i] * x.values[t * dim + i] * scale);
      // The sum enters through a root, which halves its relative error.
      const double units = static_cast<double>(dim) / 2 + 8;
      e.allowed.push_back(units * kUlp * std::fabs(e.values.back()) + kSmallest);
    }
  }
  return e;
}

Expected twin_matmul_transb(double alpha, const Tensor& a, const Tensor& b, double beta,
                            const Tensor& c) {
  Expected e{c.shape, {}, {}};
  const std::size_t k_len = a.cols();
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      double sum = 0.0;
      double size = 0.0;
      for (std::size_t k = 0; k < k_len; ++k) {
        const double product =
            static_cast<double>(a.values[m * k_len + k]) * b.values[n * k_len + k];
        sum += product;
        size += std::fabs(product);
      }
      const double old = beta == 0.0 ? 0.0 : beta * c.values[m * b.rows() + n];
      e.values.push_back(alpha * sum + old);
      const double units = static_cast<double>(k_len) + 4;
      e.allowed.push_back(units * kUlp * (std::fabs(alpha) * size + std::fabs(old)) + kSmallest);
    }
  }
  return e;
}

}  // namespace stagecraft::stages
