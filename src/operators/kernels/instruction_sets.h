#pragma once

#include <string_view>

namespace stagecraft {

// Which lines of instruction_sets.txt this processor can run. CMake also compiles this file alone
// (cmake/kernels_here.cpp), so it includes no other header of the engine.

// True if the processor has all of `features` ("avx2 fma f16c") and the operating system saves
// their registers.
bool can_run(std::string_view features);

// True if the processor by itself prefetches memory that is read from the first byte to the last.
// Prefetch instructions then make it slower.
bool prefetches_itself();

// True if the instruction set `name` is known to be slower on this processor than the one before
// it.
bool is_slower_here(std::string_view name);

}  // namespace stagecraft
