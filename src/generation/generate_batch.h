#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/engine.h"
#include "generation/generate.h"

namespace stagecraft {

// Several texts that go on from one prompt, each with random numbers of its own, computed side by
// side: while there are n of them, a weight is fetched from memory once for n tokens. Each is what
// generate() makes of the same prompt and random numbers alone, bit for bit.
//
//   context  the most tokens of each text
//   prompt   at least one token, at most `context`
//   on_done  called with each text when it ends: which, its new tokens, why it ended
//   go_on    asked before each token; false ends all texts that have not ended, as Stopped
void generate_batch(
    Engine& engine, std::size_t context, std::span<const TokenId> prompt,
    const GenerationOptions& options, std::span<Random> randoms,
    const std::function<void(std::size_t, std::span<const TokenId>, StopReason)>& on_done,
    const std::function<bool()>& go_on);

}  // namespace stagecraft
