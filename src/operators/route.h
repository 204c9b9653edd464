#pragma once

#include <cstddef>
#include <span>

namespace stagecraft {

// Which experts a token goes to, and how much of the result comes from each (Shazeer et al. 2017):
// the n_chosen largest numbers of a row stay, the others become 0. Of equal numbers the first is
// taken. normed: those that stay are divided by their sum.
//
//   shares  [n_experts]  read and written, in place; for example the softmax of the router's scores
//   n_chosen             1 to n_experts
//
// Throws Error if n_chosen is out of range.
void route(std::span<float> shares, std::size_t n_chosen, bool normed);

// y[i] = 1 / (1 + exp(-x[i])); x and y [n], y may be x. Throws Error if sizes disagree.
void sigmoid(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
