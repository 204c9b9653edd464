#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace stagecraft {

// RoPE turns pairs of elements of each head of q and k. Where the two of a pair stand is a matter
// of the rows that make them, and there are two customs:
//
//   halves  0, 1, 2 ... | d/2, d/2 + 1 ...   Hugging Face, and this engine
//   pairs   0, d/2, 1, d/2 + 1, ...          llama2.c, and GGUF of the architecture "llama"
//
// `rows` holds n_rows rows of any bytes each, n_heads heads of them; n_rows is a multiple of
// 2 * n_heads, the size of n_rows. The result is a copy in the other order.
std::vector<std::byte> halves_from_pairs(std::span<const std::byte> rows, std::size_t n_rows,
                                         std::size_t n_heads);
std::vector<std::byte> pairs_from_halves(std::span<const std::byte> rows, std::size_t n_rows,
                                         std::size_t n_heads);

// The bytes in all of such copies.
inline std::size_t total_size(const std::vector<std::vector<std::byte>>& copies) {
  std::size_t total = 0;
  for (const auto& copy : copies) total += copy.size();
  return total;
}

}  // namespace stagecraft
