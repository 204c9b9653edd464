#pragma once

// Three operators of the model as CUDA kernels, for stage 11. Each function launches one or more
// kernels and does nothing else: it allocates and copies nothing. Every pointer points to device
// memory, which holds f32 in row-major order without gaps between rows. Sizes are at least 1,
// and each array has fewer than 2^31 numbers. No input overlaps an output.
//
// Include "cuda_emulator.h" for CUDA itself. (With nvcc, this file includes CUDA's own headers.)
namespace stagecraft {

// RMSNorm, as in operators/rms_norm.h:
//   y[r][i] = weight[i] * x[r][i] / sqrt(mean_j(x[r][j]^2) + eps)
//
//   x       [rows, dim]  read
//   weight  [dim]        read
//   y       [rows, dim]  written
void rms_norm_on_gpu(const float* x, const float* weight, float eps, float* y, int rows, int dim);

// A matrix product with B transposed, as a linear layer needs it:
//   c[i][j] = sum_p(a[i][p] * b[j][p])
//
//   a  [m, k]  read
//   b  [n, k]  read
//   c  [m, n]  written
void matmul_transb_on_gpu(const float* a, const float* b, float* c, int m, int n, int k);

// Attention for one new token (decode). It may see all `length` positions of the cache, its own
// included, so there is no mask. n_heads / n_kv_heads neighbouring query heads share one key and
// value head, as in operators/attention.h:
//   scores = q_h . k_j * scale;   out_h = sum_j(softmax(scores)[j] * v_j)
//
//   q             [n_heads * head_dim]              read
//   keys, values  [length, n_kv_heads * head_dim]   read
//   out           [n_heads * head_dim]              written
//   head_dim      at most 128; n_kv_heads divides n_heads
void attention_on_gpu(const float* q, const float* keys, const float* values, float* out,
                      int n_heads, int n_kv_heads, int head_dim, int length, float scale);

// A starter calls this; delete the call when you begin. (Other stages use base/not_implemented.h,
// which makes a std::string. The checker of CUDA cannot see the accesses inside std::string.)
[[noreturn]] void NOT_IMPLEMENTED(const char* what);

}  // namespace stagecraft
