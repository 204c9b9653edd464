#pragma once

#include <string_view>

namespace stagecraft {

// Which lines of instruction_sets.txt this processor can run. CMake compiles this file alone, too
// (cmake/kernels_here.cpp), so it includes no other header of the engine.

// Does the processor have all of `features`, and does its system save their registers? "avx2 fma
// f16c"
bool can_run(std::string_view features);

// Is the instruction set `name` known to be slower on this processor than the one before it?
bool is_slower_here(std::string_view name);

}  // namespace stagecraft
