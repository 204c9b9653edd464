#pragma once

#include <functional>
#include <span>

#include "backends/engine.h"
#include "generation/generate.h"
#include "generation/logit_rules.h"

namespace stagecraft {

// Several continuations of one prompt, each with its own random numbers. They are computed
// together: n texts read each weight from memory once per pass, for n tokens. Each text is bit for
// bit the text that generate_tokens() makes alone from the same prompt, rules and random numbers.
//
//   context   the most tokens of each text
//   prompt    at least one token, at most `context`
//   on_token  called with each new token: the index of the text, and the token; false ends this
//             text, with StopReason::Stopped
//   on_done   called when a text ends: the index of the text, and the reason
//   go_on     called between passes of the prompt, if it is set; false ends all texts, with
//             StopReason::Stopped
//
// Throws Error if the prompt is empty, or if this machine does not have the memory for this number
// of texts.
void generate_batch(Engine& engine, std::size_t context, std::span<const TokenId> prompt,
                    const GenerationOptions& options, const LogitRules& rules,
                    std::span<Random> randoms,
                    const std::function<bool(std::size_t, TokenId)>& on_token,
                    const std::function<void(std::size_t, StopReason)>& on_done,
                    const std::function<bool()>& go_on = {});

}  // namespace stagecraft
