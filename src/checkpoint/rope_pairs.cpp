#include "checkpoint/rope_pairs.h"

#include <cstring>

namespace stagecraft {
namespace {

// Calls move(its index in halves order, its index in pairs order) for each row.
template <class Move>
void for_each_row(std::size_t n_rows, std::size_t n_heads, Move move) {
  const std::size_t head_dim = n_rows / n_heads;
  for (std::size_t row = 0; row < n_rows; ++row) {
    const std::size_t first = row / head_dim * head_dim;  // the first row of this head
    const std::size_t pair = row % head_dim / 2;
    const std::size_t half = row % 2;
    move(first + half * (head_dim / 2) + pair, row);
  }
}

}  // namespace

std::vector<std::byte> halves_from_pairs(std::span<const std::byte> rows, std::size_t n_rows,
                                         std::size_t n_heads) {
  std::vector<std::byte> result(rows.size());
  const std::size_t size = rows.size() / n_rows;
  for_each_row(n_rows, n_heads, [&](std::size_t half, std::size_t pair) {
    std::memcpy(result.data() + half * size, rows.data() + pair * size, size);
  });
  return result;
}

std::vector<std::byte> pairs_from_halves(std::span<const std::byte> rows, std::size_t n_rows,
                                         std::size_t n_heads) {
  std::vector<std::byte> result(rows.size());
  const std::size_t size = rows.size() / n_rows;
  for_each_row(n_rows, n_heads, [&](std::size_t half, std::size_t pair) {
    std::memcpy(result.data() + pair * size, rows.data() + half * size, size);
  });
  return result;
}

}  // namespace stagecraft
