// The places where threads wait for each other, as the scheduler sees them.
#pragma once

#include "machine.h"

namespace cuda_emulator {

// If all threads of the block that have not exited wait at the barrier, they go on.
bool release_barrier(Block& block);
// If all lanes that this one waits for have come, they go on.
bool release_lanes(Thread& thread);

// Ends the launch; the caller goes on until it waits.
void abort_from(Block& block);

}  // namespace cuda_emulator
