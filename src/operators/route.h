#pragma once

#include <cstddef>
#include <span>

namespace stagecraft {

// Experts may be divided into groups of neighbours (DeepSeek-V2). Then only experts of the n_chosen
// best groups can be chosen. The score of a group is the sum of its n_counted largest numbers.
struct RouteGroups {
  std::size_t n = 1;  // at most kMaxGroups; divides the number of experts
  std::size_t n_chosen = 1;
  std::size_t n_counted = 1;  // at most the number of experts in a group
};
inline constexpr std::size_t kMaxGroups = 64;

struct Routing {
  std::size_t n_chosen = 0;  // 1 to the number of experts in the chosen groups
  bool normed = false;       // divide the routing weights of the chosen experts by their sum
  // [n_experts], or empty. Added to the routing weights when experts and groups are chosen; the
  // result does not contain it.
  std::span<const float> bias = {};
  float scale = 1.0f;  // the result is multiplied by it
  RouteGroups groups = {};
};

// Throws Error if a number in `how` is out of range for n experts, or if bias has another size.
void check_routing(std::size_t n, const Routing& how);

// Chooses the experts of a token, and how much of the result comes from each (Shazeer et al. 2017):
// the n_chosen largest numbers of a row stay, the others become 0. Of equal numbers, the first is
// chosen. NaN counts as the largest number, so that the result shows it.
//
//   routing_weights  [n_experts]  read and written, in place; for example the softmax of the
//                                 router's scores
//
// Throws Error as check_routing() does. May be called from several threads at once.
void route(std::span<float> routing_weights, const Routing& how);

}  // namespace stagecraft
