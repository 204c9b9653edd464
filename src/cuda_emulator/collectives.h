// The places where threads wait for each other, as the scheduler sees them.
#pragma once

#include "machine.h"

namespace cuda_emulator {

// If all threads of the block that have not exited wait at the barrier, they go on.
bool release_barrier(Block& block);
// If all lanes that this one waits for have come, they go on.
bool release_lanes(Thread& thread);
// Lets the lanes go on that wait in __activemask, if no lane of the warp of `thread` can go on.
void release_active(Thread& thread);

// Waits for the lanes of the mask; returns what this one gets. machine.h names the kinds.
std::uint64_t collective(Collective kind, unsigned mask, std::uint64_t value, int argument,
                         int width, Address pc);

// Ends the launch; the caller goes on until it waits.
void abort_from(Block& block);

}  // namespace cuda_emulator
