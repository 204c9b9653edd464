// Operations at which threads wait for each other: barriers of a block, collectives of a warp.
#pragma once

#include "machine.h"

namespace cuda_emulator {

// If all threads of the block that have not exited wait at the barrier, makes them ready.
bool release_barrier(Block& block);
// If all lanes that this thread waits for have come, makes them ready.
bool release_lanes(Thread& thread);
// If no lane in the warp of `thread` is ready, makes the lanes ready that wait in __activemask.
void release_active(Thread& thread);

// Waits for the lanes of the mask; returns the result of this lane. machine.h lists the kinds.
std::uint64_t collective(Collective kind, unsigned mask, std::uint64_t value, int argument,
                         int width, Address pc);

// Ends the launch. Returns; the caller runs until it waits.
void abort_from(Block& block);

}  // namespace cuda_emulator
