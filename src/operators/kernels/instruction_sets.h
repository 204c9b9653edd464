#pragma once

#include <string_view>

namespace stagecraft {

// About the lines of instruction_sets.txt. CMake asks this, too (cmake/kernels_here.cpp), so no
// other file of the engine is needed for it.

// Does the processor have all of `features`, and does its system save their registers? "avx2 fma
// f16c"
bool can_run(std::string_view features);

// Is the instruction set `name` known to be slower on this processor than the one before it?
bool is_slower_here(std::string_view name);

}  // namespace stagecraft
