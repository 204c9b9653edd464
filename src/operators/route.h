#pragma once

#include <cstddef>
#include <span>

namespace stagecraft {

// Experts may stand in groups, side by side (DeepSeek-V2): then only those of the n_chosen best
// groups can be chosen. A group is as good as the sum of its n_counted largest numbers.
struct RouteGroups {
  std::size_t n = 1;  // at most kMaxGroups; divides the number of experts
  std::size_t n_chosen = 1;
  std::size_t n_counted = 1;  // at most as many as stand in a group
};
inline constexpr std::size_t kMaxGroups = 64;

struct Routing {
  std::size_t n_chosen = 0;  // 1 to the number of experts in the chosen groups
  bool normed = false;       // the shares of those that are chosen are divided by their sum
  // [n_experts], or empty: added to the shares for the choice alone, of experts and of groups
  std::span<const float> bias = {};
  float scale = 1.0f;  // of the result
  RouteGroups groups = {};
};

// Which experts a token goes to, and how much of the result comes from each (Shazeer et al. 2017):
// the n_chosen largest numbers of a row stay, the others become 0. Of equal numbers the first is
// taken.
//
//   shares  [n_experts]  read and written, in place; for example the softmax of the router's scores
//
// Throws Error if a number of `how` is out of range.
void route(std::span<float> shares, const Routing& how);

// y[i] = 1 / (1 + exp(-x[i])); x and y [n], y may be x. Throws Error if sizes disagree.
void sigmoid(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
