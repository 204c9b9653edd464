#pragma once

#include "backends/engine.h"
#include "base/error.h"

namespace stagecraft {

// The memory in bytes for n_texts sessions of one engine with full contexts of `context` tokens:
// keys, values, logits, and once the buffers of a forward pass. Pages that are never written take
// no memory.
double session_bytes(const Plan& plan, const EngineOptions& options, std::size_t context,
                     std::size_t n_texts = 1);

// The default context in tokens: that of the model's training, at most 4,096.
std::size_t default_context(const Plan& plan);

// Throws Error if n_texts texts of `context` tokens need more memory than this process may use
// (usable_memory). Otherwise the operating system could end the program in the middle of a story.
void check_memory(const Engine& engine, std::size_t context, std::size_t n_texts = 1);

// Throws Error if what a caller computes from a text of n_tokens needs more bytes than this process
// may use.
void check_text_memory(std::size_t n_tokens, double bytes);

// The error when memory for n_texts texts cannot be allocated although check_memory accepts them:
// other data takes too much of it, or the process has a limit of its own (ulimit -v).
Error no_memory(const Engine& engine, std::size_t context, std::size_t n_texts = 1);

}  // namespace stagecraft
