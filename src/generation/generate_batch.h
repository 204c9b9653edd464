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
//   context   the most tokens of each text
//   prompt    at least one token, at most `context`
//   on_token  called with each new token: of which text, and the token; false ends this text, as
//             Stopped
//   on_done   called when a text ends: which, and why
//
// Throws Error if the prompt is empty, or if this machine has no memory for so many texts.
void generate_batch(Engine& engine, std::size_t context, std::span<const TokenId> prompt,
                    const GenerationOptions& options, std::span<Random> randoms,
                    const std::function<bool(std::size_t, TokenId)>& on_token,
                    const std::function<void(std::size_t, StopReason)>& on_done);

}  // namespace stagecraft
