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

}  // namespace stagecraft
