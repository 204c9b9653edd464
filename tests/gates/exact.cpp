#include "tests/gates/exact.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::stages {
namespace {

constexpr double kSmallest = 0x1p-126;  // below this, f32 loses bits
// The tolerance of a sigmoid below zero, where it is small: a formula like (1 + tanh(x / 2)) / 2 is
// equally right, and has an error of a few units in the last place of 1. Far below zero, it is 0 in
// every formula.
constexpr double kSigmoid = 4 * kUlp;
constexpr double kFarBelowZero = 64.0;

double silu(double x) { return x / (1.0 + std::exp(-x)); }
constexpr double kSiluSteepest = 1.1;  // the largest slope of silu

void push(Expected& e, double value, double allowed) {
  e.values.push_back(value);
  e.allowed.push_back(allowed);
}

std::size_t rows(const Expected& e) { return e.shape.size() == 2 ? e.shape[0] : 1; }
std::size_t cols(const Expected& e) { return e.shape.back(); }

// sum of a[i] * b[i]; both factors have errors.
struct Product {
  double sum = 0.0;
  double allowed = 0.0;
};
Product inner(const double* a, const double* a_off, const double* b, const double* b_off,
              std::size_t n) {
  Product result;
  double size = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    result.sum += a[i] * b[i];
    size += std::fabs(a[i] * b[i]);
    result.allowed += a_off[i] * std::fabs(b[i]) + std::fabs(a[i]) * b_off[i] + a_off[i] * b_off[i];
  }
  result.allowed += static_cast<double>(n) * kUlp * size;
  return result;
}

// One head of one position of a [positions, heads * head_dim] matrix.
struct Head {
  const double* values;
  const double* allowed;
};
Head head_of(const Expected& e, std::size_t position, std::size_t head, std::size_t head_dim) {
  const std::size_t at = position * cols(e) + head * head_dim;
  return {e.values.data() + at, e.allowed.data() + at};
}

}  // namespace

Expected exact(const Tensor& tensor) {
  Expected e{tensor.shape, {}, {}};
  e.values.assign(tensor.values.begin(), tensor.values.end());
  e.allowed.assign(tensor.values.size(), 0.0);
  return e;
}

Expected exact_add(const Expected& x, const Expected& y) {
  Expected e{y.shape, {}, {}};
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const double sum = x.values[i] + y.values[i];
    push(e, sum, x.allowed[i] + y.allowed[i] + kUlp * std::fabs(sum) + kSmallest);
  }
  return e;
}

Expected exact_silu(const Expected& x) {
  Expected e{x.shape, {}, {}};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double y = silu(x.values[i]);
    push(e, y,
         kSiluSteepest * x.allowed[i] + 16 * kUlp * std::fabs(y) +
             kSigmoid * std::min(std::fabs(x.values[i]), kFarBelowZero));
  }
  return e;
}

Expected exact_swiglu(const Expected& gate, const Expected& up) {
  const Expected activated = exact_silu(gate);
  Expected e{gate.shape, {}, {}};
  for (std::size_t i = 0; i < gate.values.size(); ++i) {
    const double y = activated.values[i] * up.values[i];
    push(e, y,
         activated.allowed[i] * (std::fabs(up.values[i]) + up.allowed[i]) +
             std::fabs(activated.values[i]) * up.allowed[i] + 4 * kUlp * std::fabs(y) + kSmallest);
  }
  return e;
}

Expected exact_rms_norm(const Expected& x, const Tensor& weight, double eps) {
  Expected e{x.shape, {}, {}};
  const std::size_t dim = cols(x);
  for (std::size_t t = 0; t < rows(x); ++t) {
    const double* in = x.values.data() + t * dim;
    const double* off = x.allowed.data() + t * dim;
    double squares = 0.0;
    double squares_off = 0.0;
    for (std::size_t i = 0; i < dim; ++i) {
      squares += in[i] * in[i];
      squares_off += 2 * std::fabs(in[i]) * off[i] + off[i] * off[i];
    }
    const double mean_eps = squares / static_cast<double>(dim) + eps;
    const double scale = 1.0 / std::sqrt(mean_eps);
    // The error of the sum goes through a square root, which halves it.
    const double relative = (static_cast<double>(dim) / 2 + 8) * kUlp +
                            squares_off / static_cast<double>(dim) / mean_eps / 2;
    for (std::size_t i = 0; i < dim; ++i) {
      const double y = weight.values[i] * in[i] * scale;
      push(e, y,
           relative * std::fabs(y) + std::fabs(weight.values[i]) * scale * off[i] + kSmallest);
    }
  }
  return e;
}

Expected exact_matmul_transb(double alpha, const Expected& a, const Tensor& b, double beta,
                             const Tensor& c) {
  Expected e{c.shape, {}, {}};
  const Expected weights = exact(b);
  const std::size_t k_len = cols(a);
  const std::size_t n_len = rows(weights);
  for (std::size_t m = 0; m < rows(a); ++m) {
    for (std::size_t n = 0; n < n_len; ++n) {
      const Product product =
          inner(a.values.data() + m * k_len, a.allowed.data() + m * k_len,
                weights.values.data() + n * k_len, weights.allowed.data() + n * k_len, k_len);
      const double old = beta == 0.0 ? 0.0 : beta * c.values[m * n_len + n];
      const double sum = alpha * product.sum;
      push(e, sum + old,
           std::fabs(alpha) * product.allowed + 4 * kUlp * (std::fabs(sum) + std::fabs(old)) +
               kSmallest);
    }
  }
  return e;
}

Expected exact_linear(const Expected& a, const Tensor& weight) {
  Tensor c;
  c.shape = {rows(a), weight.rows()};
  c.values.assign(rows(a) * weight.rows(), 0.0f);
  return exact_matmul_transb(1.0, a, weight, 0.0, c);
}

Expected exact_softmax(const Expected& x) {
  Expected e{x.shape, {}, {}};
  const std::size_t n = cols(x);
  if (n == 0) return e;
  for (std::size_t r = 0; r < rows(x); ++r) {
    const double* in = x.values.data() + r * n;
    const double max = *std::max_element(in, in + n);
    double sum = 0.0;
    double off = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += std::exp(in[i] - max);
      // The difference to the maximum is rounded once; exp() turns this error into a factor.
      const double difference = std::isfinite(in[i]) ? std::fabs(in[i] - max) : 0.0;
      off = std::max(off, x.allowed[r * n + i] + kUlp * std::min(difference, 110.0));
    }
    const double relative = 2 * std::expm1(2 * off) + (static_cast<double>(n) + 16) * kUlp;
    for (std::size_t i = 0; i < n; ++i) {
      const double p = std::exp(in[i] - max) / sum;
      push(e, p, relative * p + 1e-37);
    }
  }
  return e;
}

Expected exact_rope(const Expected& x, const Tensor& inv_freq, std::size_t first_position) {
  Expected e = x;
  const std::size_t half = inv_freq.values.size();
  for (std::size_t t = 0; t < rows(x); ++t) {
    for (std::size_t head = 0; head < cols(x); head += 2 * half) {
      for (std::size_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(first_position + t) * static_cast<double>(inv_freq.values[i]);
        const std::size_t at = t * cols(x) + head + i;
        const double a = x.values[at];
        const double b = x.values[at + half];
        e.values[at] = a * std::cos(angle) - b * std::sin(angle);
        e.values[at + half] = b * std::cos(angle) + a * std::sin(angle);
        const double off = x.allowed[at] + x.allowed[at + half] +
                           (angle + 8) * kUlp * (std::fabs(a) + std::fabs(b)) + kSmallest;
        e.allowed[at] = e.allowed[at + half] = off;
      }
    }
  }
  return e;
}

ExactAttention exact_attention(const Expected& q, const Expected& k, const Expected& v,
                               std::size_t n_heads, std::size_t n_kv_heads, std::size_t window) {
  const std::size_t head_dim = cols(q) / n_heads;
  const std::size_t q_len = rows(q);
  const std::size_t kv_len = rows(k);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  ExactAttention result;
  result.probabilities.shape = {n_heads, q_len, kv_len};
  result.out = {q.shape, std::vector<double>(q.values.size()),
                std::vector<double>(q.values.size())};
  for (std::size_t head = 0; head < n_heads; ++head) {
    const std::size_t kv_head = head / (n_heads / n_kv_heads);
    for (std::size_t i = 0; i < q_len; ++i) {
      const std::size_t position = kv_len - q_len + i;
      Expected scores{{kv_len}, {}, {}};
      for (std::size_t j = 0; j < kv_len; ++j) {
        const bool hidden = j > position || (window != 0 && position - j >= window);
        const Head q_i = head_of(q, i, head, head_dim);
        const Head k_j = head_of(k, j, kv_head, head_dim);
        const Product score = inner(q_i.values, q_i.allowed, k_j.values, k_j.allowed, head_dim);
        push(scores, hidden ? -INFINITY : scale * score.sum,
             hidden ? 0.0 : scale * score.allowed + 4 * kUlp * std::fabs(scale * score.sum));
      }
      const Expected p = exact_softmax(scores);
      for (std::size_t j = 0; j < kv_len; ++j) {
        const bool hidden = std::isinf(scores.values[j]);
        push(result.probabilities, p.values[j], hidden ? 0.0 : p.allowed[j]);
      }
      for (std::size_t d = 0; d < head_dim; ++d) {
        double sum = 0.0;
        double size = 0.0;
        double off = 0.0;
        for (std::size_t j = 0; j < kv_len; ++j) {
          const Head v_j = head_of(v, j, kv_head, head_dim);
          const double value = std::fabs(v_j.values[d]);
          sum += p.values[j] * v_j.values[d];
          size += p.values[j] * value;
          if (!std::isinf(scores.values[j])) {
            off += p.allowed[j] * (value + v_j.allowed[d]) + p.values[j] * v_j.allowed[d];
          }
        }
        const std::size_t at = i * cols(q) + head * head_dim + d;
        result.out.values[at] = sum;
        result.out.allowed[at] = off + static_cast<double>(kv_len) * kUlp * size + kSmallest;
      }
    }
  }
  return result;
}

Expected stacked(const Expected& a, const Expected& b) {
  Expected e = a;
  e.shape[0] += b.shape[0];
  e.values.insert(e.values.end(), b.values.begin(), b.values.end());
  e.allowed.insert(e.allowed.end(), b.allowed.begin(), b.allowed.end());
  return e;
}

}  // namespace stagecraft::stages
