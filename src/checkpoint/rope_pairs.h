#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stagecraft {

// RoPE rotates pairs of elements of each head of q and k. The order of the weight's rows decides
// which elements form a pair, and files use two orders. With d = head_dim, the rows of one head
// are:
//
//   halves  0, 1, 2 ... | d/2, d/2 + 1 ...   Hugging Face, and this engine
//   pairs   0, d/2, 1, d/2 + 1, ...          llama2.c, and GGUF of the architecture "llama"
//
// `rows` holds the n_rows rows of n_heads heads, each row of equal size in bytes. n_rows must be a
// multiple of 2 * n_heads. The result is a copy in the other order.
std::vector<std::byte> halves_from_pairs(std::span<const std::byte> rows, std::size_t n_rows,
                                         std::size_t n_heads);
std::vector<std::byte> pairs_from_halves(std::span<const std::byte> rows, std::size_t n_rows,
                                         std::size_t n_heads);

}  // namespace stagecraft
