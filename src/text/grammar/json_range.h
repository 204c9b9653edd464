#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace stagecraft {

// A bound of a range of numbers, in decimal digits: -12.5 is {true, "12", "5"}.
struct RangeBound {
  bool negative = false;
  std::string whole = "0";    // without leading zeros
  std::string fraction = {};  // without zeros at its end
  bool exclusive = false;

  bool operator<(const RangeBound& other) const;  // compares the numbers
};

// The decimal numbers from `low` to `high` with at most n_decimals digits after the point, as a
// GBNF expression; nullopt if there is none. The texts have no "+", no leading zeros and no
// exponent, and "-0" is not among them. If a bound is missing, numbers have up to 16 digits before
// the point (more if the other bound has more).
std::optional<std::string> range_gbnf(const std::optional<RangeBound>& low,
                                      const std::optional<RangeBound>& high,
                                      std::size_t n_decimals);

}  // namespace stagecraft
