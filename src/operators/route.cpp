#include "operators/route.h"

#include <cmath>

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {
namespace {

// Whether expert a is chosen before expert b. What is no number comes first, so that it is seen in
// the result.
bool comes_before(std::span<const float> shares, std::size_t a, std::size_t b) {
  const bool no_number = std::isnan(shares[a]);
  if (no_number != std::isnan(shares[b])) return no_number;
  if (!no_number && shares[a] != shares[b]) return shares[a] > shares[b];
  return a < b;
}

}  // namespace

void route(std::span<float> shares, std::size_t n_chosen, bool normed) {
  const std::size_t n = shares.size();
  if (n_chosen == 0 || n_chosen > n) {
    throw Error("route: n_chosen: expected 1 to {}, found {}", n, n_chosen);
  }
  std::size_t last = n;  // that was chosen; n: none
  for (std::size_t i = 0; i < n_chosen; ++i) {
    std::size_t next = n;
    for (std::size_t e = 0; e < n; ++e) {
      const bool is_left = last == n || comes_before(shares, last, e);
      if (is_left && (next == n || comes_before(shares, e, next))) next = e;
    }
    last = next;
  }
  float sum = 0.0f;
  for (std::size_t e = 0; e < n; ++e) {
    if (comes_before(shares, last, e)) shares[e] = 0.0f;
    sum += shares[e];
  }
  if (!normed) return;
  for (float& share : shares) share /= sum;
}

void sigmoid(std::span<const float> x, std::span<float> y) {
  check_size("sigmoid", "y", x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = 1.0f / (1.0f + std::exp(-x[i]));
}

}  // namespace stagecraft
