#include "operators/route.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {
namespace {

// Compares experts, and knows which of them cannot be chosen.
class Choice {
 public:
  Choice(std::span<const float> routing_weights, const Routing& how)
      : routing_weights_(routing_weights), how_(how), size_(routing_weights.size() / how.groups.n) {
    open_.fill(true);
    if (how.groups.n == how.groups.n_chosen) return;
    for (std::size_t g = 0; g < how.groups.n; ++g) good_[g] = largest_sum(g);
    for (std::size_t g = 0; g < how.groups.n; ++g) open_[g] = is_open(g);
  }

  bool can_choose(std::size_t e) const { return open_[e / size_]; }
  // Its routing weight: NaN if the number that it was chosen by is NaN, because the bias may be.
  float weight(std::size_t e) const {
    return std::isnan(count(e)) ? count(e) : routing_weights_[e];
  }
  // Whether expert a is chosen before expert b.
  bool comes_before(std::size_t a, std::size_t b) const {
    return is_before(count(a), count(b), a < b);
  }

 private:
  float count(std::size_t e) const {
    return how_.bias.empty() ? routing_weights_[e] : routing_weights_[e] + how_.bias[e];
  }

  // NaN comes first, so that the result shows it.
  static bool is_before(float a, float b, bool first) {
    if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
    return std::isnan(a) || a == b ? first : a > b;
  }

  // The sum of the n_counted largest numbers of a group.
  float largest_sum(std::size_t group) const {
    float sum = 0.0f;
    for (std::size_t e = group * size_; e < (group + 1) * size_; ++e) {
      std::size_t before = 0;
      for (std::size_t other = group * size_; other < (group + 1) * size_; ++other) {
        before += other != e && comes_before(other, e) ? 1 : 0;
      }
      if (before < how_.groups.n_counted) sum += count(e);
    }
    return sum;
  }

  bool is_open(std::size_t group) const {
    std::size_t before = 0;
    for (std::size_t other = 0; other < how_.groups.n; ++other) {
      before += other != group && is_before(good_[other], good_[group], other < group) ? 1 : 0;
    }
    return before < how_.groups.n_chosen;
  }

  std::span<const float> routing_weights_;
  const Routing& how_;
  std::size_t size_;  // experts per group
  std::array<float, kMaxGroups> good_ = {};
  std::array<bool, kMaxGroups> open_ = {};
};

void check_range(const char* what, std::size_t most, std::size_t found) {
  if (found == 0 || found > most) {
    throw Error("route: {}: expected 1 to {}, found {}", what, most, found);
  }
}

}  // namespace

void check_routing(std::size_t n, const Routing& how) {
  const RouteGroups& groups = how.groups;
  check_range("groups", std::min(n, kMaxGroups), groups.n);
  if (n % groups.n != 0) {
    throw Error("route: groups: expected a divisor of {}, found {}", n, groups.n);
  }
  check_range("groups.n_chosen", groups.n, groups.n_chosen);
  check_range("groups.n_counted", n / groups.n, groups.n_counted);
  check_range("n_chosen", n / groups.n * groups.n_chosen, how.n_chosen);
  if (!how.bias.empty()) check_size("route", "bias", n, how.bias.size());
}

void route(std::span<float> routing_weights, const Routing& how) {
  const std::size_t n = routing_weights.size();
  check_routing(n, how);
  const Choice choice(routing_weights, how);
  std::size_t last = n;  // the last chosen expert; n: none yet
  for (std::size_t i = 0; i < how.n_chosen; ++i) {
    std::size_t next = n;
    for (std::size_t e = 0; e < n; ++e) {
      const bool is_left = choice.can_choose(e) && (last == n || choice.comes_before(last, e));
      if (is_left && (next == n || choice.comes_before(e, next))) next = e;
    }
    last = next;
  }
  float sum = 0.0f;
  for (std::size_t e = 0; e < n; ++e) {
    const bool is_chosen = choice.can_choose(e) && !choice.comes_before(last, e);
    routing_weights[e] = is_chosen ? choice.weight(e) : 0.0f;
    sum += routing_weights[e];
  }
  for (float& weight : routing_weights) {
    if (weight == 0.0f) continue;  // not chosen: it stays 0, whatever the sum is
    if (how.normed) weight /= sum;
    weight *= how.scale;
  }
}

}  // namespace stagecraft
