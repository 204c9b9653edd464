#include "course/judge/diagnosis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "course/judge/messages.h"
#include "tensor/stored_tensor.h"

namespace stagecraft::stages {
namespace {

// The compiler gives each local variable of a student that has no value the bytes 0xfe (unset_NN in
// stages.cmake). As a float, this is -1.69e38.
constexpr float kUnset = 1.6e38f;

bool right(const Expected& expected, std::size_t i, float got) {
  if (std::isnan(expected.values[i])) return std::isnan(got);
  if (std::isinf(expected.values[i])) return static_cast<double>(got) == expected.values[i];
  return std::fabs(static_cast<double>(got) - expected.values[i]) <= expected.allowed[i];
}

// The sign of a NaN means nothing.
double without_sign_of_nan(double value) { return std::isnan(value) ? NAN : value; }

std::string place(const Expected& expected, std::size_t i) {
  if (expected.shape.size() == 3) {
    const std::size_t keys = expected.shape[2];
    const std::size_t queries = expected.shape[1];
    return say("place_head_query_key", i / keys / queries, i / keys % queries, i % keys);
  }
  if (expected.shape.size() != 2) return say("place_element", i);
  return say("place_row_column", i / expected.shape[1], i % expected.shape[1]);
}

// If all numbers are wrong by the same factor or the same summand, its value; else NaN. Needs at
// least three numbers, because two can agree by accident.
template <class Relation>
double common(const Expected& expected, const Tensor& got, Relation relation) {
  std::vector<double> found;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double e = expected.values[i];
    const double g = got.values[i];
    if (!std::isfinite(g) || !std::isfinite(e)) return NAN;
    if (std::fabs(e) < 1e-3) continue;  // too small to say anything about a factor
    found.push_back(relation(e, g));
  }
  if (found.size() < 3) return NAN;
  const auto [low, high] = std::minmax_element(found.begin(), found.end());
  const double size = std::max(std::fabs(*low), std::fabs(*high));
  return *high - *low <= 1e-3 * size ? found[found.size() / 2] : NAN;
}

bool is_transposed(const Expected& expected, const Tensor& got) {
  if (expected.shape.size() != 2 || expected.shape[0] < 2 || expected.shape[1] < 2) return false;
  // Compares the memory, not the shape: a transposed result has the expected shape only if it is
  // square.
  const std::size_t rows = expected.shape[0];
  const std::size_t cols = expected.shape[1];
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c) {
      const double g = got.values[c * rows + r];
      const std::size_t i = r * cols + c;
      if (!(std::fabs(g - expected.values[i]) <= expected.allowed[i])) return false;
    }
  }
  return true;
}

bool is_permuted(const Expected& expected, const Tensor& got) {
  std::vector<double> e = expected.values;
  std::vector<double> g(got.values.begin(), got.values.end());
  const auto finite = [](const std::vector<double>& all) {
    return std::ranges::all_of(all, [](double x) { return std::isfinite(x); });
  };
  if (!finite(e) || !finite(g) || !finite(expected.allowed)) return false;
  const double allowed = *std::max_element(expected.allowed.begin(), expected.allowed.end());
  // Comparing the minimum and the maximum rules out nearly all cases; sorting a large result takes
  // longer than all other checks.
  const auto [lowest, highest] = std::ranges::minmax(e);
  const auto [low, high] = std::ranges::minmax(g);
  if (std::fabs(lowest - low) > 2 * allowed || std::fabs(highest - high) > 2 * allowed)
    return false;
  if (highest - lowest <= 8 * allowed) return false;  // one number, or equal ones: no other place
  // At least two numbers are far from what belongs in their places. Roundings are not.
  std::size_t n_apart = 0;
  for (std::size_t i = 0; i < e.size(); ++i) n_apart += std::fabs(e[i] - g[i]) > 2 * allowed;
  if (n_apart < 2) return false;
  std::sort(e.begin(), e.end());
  std::sort(g.begin(), g.end());
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (std::fabs(e[i] - g[i]) > 2 * allowed) return false;
  }
  return true;
}

std::string pattern(const Expected& expected, const Tensor& got) {
  if (expected.whole) return {};  // a factor of an id means nothing
  if (is_transposed(expected, got)) return say("looks_transposed");
  const double factor = common(expected, got, [](double e, double g) { return g / e; });
  if (std::isfinite(factor) && factor != 0.0 && std::fabs(factor - 1.0) > 1e-3) {
    return say("looks_scaled", factor);
  }
  const double shift = common(expected, got, [](double e, double g) { return g - e; });
  if (std::isfinite(shift) && shift != 0.0) return say("looks_shifted", shift);
  if (is_permuted(expected, got)) return say("looks_permuted");
  return {};
}

}  // namespace

bool agrees(const Expected& expected, const Tensor& got) {
  if (got.values.size() != expected.values.size()) return false;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    if (!right(expected, i, got.values[i])) return false;
  }
  return true;
}

std::size_t count_telling(const Expected& expected, const Tensor& got) {
  const std::size_t n = got.values.size();
  if (n != expected.values.size()) return 0;
  std::size_t n_right = 0;
  std::size_t n_numbers = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_right = right(expected, i, got.values[i]);
    n_right += is_right;
    n_numbers += !is_right && std::isfinite(got.values[i]);
  }
  return n_numbers + std::min(n_right, n - n_right - n_numbers);
}

std::size_t count_unchanged(const Expected& expected, const Tensor& got, const Tensor& before) {
  const std::size_t n = got.values.size();
  if (n != expected.values.size() || n != before.values.size()) return 0;
  std::size_t unchanged = 0;
  for (std::size_t i = 0; i < n; ++i) {
    // NaN is equal to nothing: a NaN that is left and one that was computed cannot be told apart.
    unchanged += got.values[i] == before.values[i] && !right(expected, i, got.values[i]);
  }
  return unchanged;
}

std::string diagnose(const std::string& function, const std::string& output,
                     const Expected& expected, const Tensor& got) {
  if (got.values.size() != expected.values.size()) {
    return say("wrong_shape", function, output, shape_text(expected.shape), shape_text(got.shape));
  }
  std::size_t wrong = 0;
  std::size_t not_finite = 0;
  std::size_t untouched = 0;
  std::size_t from_outside = 0;
  bool is_unset = false;
  std::size_t first = 0;
  std::size_t worst = 0;
  double worst_error = -1.0;
  for (std::size_t i = got.values.size(); i-- > 0;) {
    const float g = got.values[i];
    if (right(expected, i, g)) continue;
    ++wrong;
    first = i;
    if (is_untouched(g)) {
      ++untouched;
    } else if (is_made_of_untouched(g)) {
      ++from_outside;
    } else if (!std::isfinite(g)) {
      ++not_finite;
    } else if (std::fabs(g) >= kUnset) {
      is_unset = true;
    }
    const double error = std::isfinite(g) ? std::fabs(g - expected.values[i]) : -0.5;
    if (error >= worst_error) {
      worst_error = error;
      worst = i;
    }
  }
  std::vector<std::string> lines;
  lines.push_back(
      say("wrong_at", function, output, shape_text(expected.shape), place(expected, first)));
  const double e = without_sign_of_nan(expected.values[first]);
  const double g = without_sign_of_nan(got.values[first]);
  const double allowed = expected.allowed[first];
  const bool look_equal = fmt::format("{:.7g}", e) == fmt::format("{:.7g}", g);
  lines.push_back(!std::isfinite(e) || !std::isfinite(allowed)
                      ? say("expected_got_exactly", e, g)
                      : say(look_equal ? "expected_got_close" : "expected_got", e, g, allowed));
  const bool several = got.values.size() > 1;
  if (several && worst_error >= 0.0) {
    lines.push_back(say("share", wrong, got.values.size(), worst_error, place(expected, worst)));
  } else if (several) {
    lines.push_back(say("share_only", wrong, got.values.size()));
  }
  if (untouched > 0) lines.push_back(say("untouched", untouched));
  if (from_outside > 0) lines.push_back(say("from_outside", from_outside));
  if (not_finite > 0) lines.push_back(say("not_finite", not_finite));
  if (is_unset) lines.push_back(say("looks_unset"));
  if (const std::string looks = pattern(expected, got); !looks.empty()) lines.push_back(looks);
  std::string text = lines[0];
  for (std::size_t i = 1; i < lines.size(); ++i) text += "\n  " + lines[i];
  return text;
}

std::string diagnose_tokens(const std::string& what, const std::vector<double>& expected,
                            const std::vector<float>& got,
                            const std::function<std::string(int)>& spell) {
  const auto id = [](auto number) { return static_cast<int>(number); };
  const std::size_t both = std::min(expected.size(), got.size());
  std::size_t first = 0;
  while (first < both && expected[first] == static_cast<double>(got[first])) ++first;
  if (first == 0 && both > 0) {
    return say("token_wrong_first", what, spell(id(expected[0])), spell(id(got[0])));
  }
  if (first < both) {
    return say("token_wrong", what, first + 1, spell(id(expected[first])), spell(id(got[first])));
  }
  if (got.size() < expected.size()) {
    return say("tokens_short", what, got.size(), expected.size(), spell(id(expected[first])));
  }
  return say("tokens_long", what, got.size(), expected.size(), spell(id(got[first])));
}

std::string diagnose_shares(const Expected& expected, const Tensor& counts, std::size_t total) {
  const auto percent = [&](double count) { return 100.0 * count / static_cast<double>(total); };
  std::size_t worst = 0;
  std::size_t wrong = 0;
  double worst_error = -1.0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    wrong += !right(expected, i, counts.values[i]);
    const double error = std::fabs(counts.values[i] - expected.values[i]);
    if (right(expected, i, counts.values[i]) || error <= worst_error) continue;
    worst_error = error;
    worst = i;
  }
  return say("share_wrong", worst, percent(expected.values[worst]), percent(counts.values[worst])) +
         "\n  " + say("shares_wrong", wrong, expected.values.size());
}

}  // namespace stagecraft::stages
