#pragma once

#include "course/judge/gate.h"

namespace stagecraft::stages {

inline constexpr double kUlp = 0x1p-24;  // half a unit in the last place of a float, relative

// The functions of the stages in f64, for questions made at run time. Inputs may already have
// errors (`allowed`), and each function returns the error that its result may then have. So blocks
// are judged like operators. The rules: a sum of n products, in any order, has an error of at most
// n * 2^-24 * sum(|products|) (Higham 2002, section 3.1); a rounding adds 2^-24 of the result; exp,
// sin and cos of a libm add a few times that.
Expected exact(const Tensor& tensor);

Expected exact_add(const Expected& x, const Expected& y);
Expected exact_silu(const Expected& x);
Expected exact_swiglu(const Expected& gate, const Expected& up);
Expected exact_rms_norm(const Expected& x, const Tensor& weight, double eps);
Expected exact_matmul_transb(double alpha, const Expected& a, const Tensor& b, double beta,
                             const Tensor& c);
// a * weight^T
Expected exact_linear(const Expected& a, const Tensor& weight);
Expected exact_softmax(const Expected& x);
Expected exact_rope(const Expected& x, const Tensor& inv_freq, std::size_t first_position);

struct ExactAttention {
  Expected probabilities;  // [n_heads, q_len, kv_len]
  Expected out;
};
ExactAttention exact_attention(const Expected& q, const Expected& k, const Expected& v,
                               std::size_t n_heads, std::size_t n_kv_heads, std::size_t window);

// The rows of `a`, then the rows of `b`.
Expected stacked(const Expected& a, const Expected& b);

}  // namespace stagecraft::stages
