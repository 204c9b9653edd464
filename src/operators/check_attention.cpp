#include "operators/check_attention.h"

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {

void check_attention(MatrixView<const float> q, MatrixView<const float> keys,
                     MatrixView<const float> values, const AttentionShape& shape,
                     MatrixView<float> probabilities, MatrixView<float> out) {
  if (shape.n_kv_heads == 0 || shape.n_heads % shape.n_kv_heads != 0) {
    throw Error("attention: expected n_heads to be a multiple of n_kv_heads, found {} and {}",
                shape.n_heads, shape.n_kv_heads);
  }
  if (q.rows() > keys.rows()) {
    throw Error("attention: expected at least as many keys as queries, found {} and {}",
                keys.rows(), q.rows());
  }
  check_shape("attention", "q", q.rows(), shape.n_heads * shape.head_dim, q);
  check_shape("attention", "keys", keys.rows(), shape.n_kv_heads * shape.head_dim, keys);
  check_shape("attention", "values", keys.rows(), keys.cols(), values);
  check_shape("attention", "probabilities", shape.n_heads * q.rows(), keys.rows(), probabilities);
  check_shape("attention", "out", q.rows(), q.cols(), out);
}

}  // namespace stagecraft
