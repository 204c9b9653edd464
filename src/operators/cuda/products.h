#pragma once

#include "operators/cuda/operators.h"
#include "operators/cuda/warp.h"

// Used by linear.cu and tensor_linear.cu: one launch computes up to kMostProducts products. The
// blocks of the first product come first.
namespace stagecraft::cuda {

// Which product a block computes, and the block's first output.
struct Place {
  unsigned product, first_output;
};
__device__ inline Place place_of(const Products& products, unsigned block, unsigned per_block) {
  unsigned i = 0;
  for (; i + 1 < products.n; ++i) {
    const unsigned n_blocks = pieces(products.of[i].weight.outputs, per_block);
    if (block < n_blocks) break;
    block -= n_blocks;
  }
  return {i, block * per_block};
}

inline unsigned all_blocks(const Products& products, unsigned per_block) {
  unsigned n = 0;
  for (unsigned i = 0; i < products.n; ++i) {
    n += pieces(products.of[i].weight.outputs, per_block);
  }
  return n;
}

__device__ inline void store_sum(const Product& product, unsigned row, unsigned output, float sum) {
  if (product.bias != nullptr) sum += product.bias[output];
  float* to = product.out.values + static_cast<size_t>(row) * product.out.stride + output;
  *to = product.add ? *to + sum : sum;
}

}  // namespace stagecraft::cuda
