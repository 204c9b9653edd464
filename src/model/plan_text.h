#pragma once

#include <cstddef>
#include <string>

#include "model/plan.h"

namespace stagecraft {

// ", 8 of 16 columns of each head", or "" if RoPE rotates whole heads. first: the first rotated
// column.
std::string rotated_text(std::size_t columns, std::size_t head_dim, std::size_t first = 0);

// The plan as text, one step per line. Equal layers are printed once.
std::string plan_text(const Plan& plan);

// The first lines in which two different texts differ. "the end" stands for a line that one of them
// does not have.
struct LineDifference {
  std::string expected, found;
};
LineDifference first_difference(const std::string& expected, const std::string& found);

}  // namespace stagecraft
