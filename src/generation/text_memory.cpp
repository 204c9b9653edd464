#include "generation/text_memory.h"

#include <algorithm>
#include <string>

#include "base/usable_memory.h"

namespace stagecraft {
namespace {

// The longest context below `too_long` whose n_texts texts fit into this number of bytes.
std::size_t longest_context(const Engine& engine, std::size_t too_long, std::size_t n_texts,
                            double bytes) {
  std::size_t fits = 0;
  while (too_long - fits > 1) {
    const std::size_t middle = fits + (too_long - fits) / 2;
    const double needed = session_bytes(engine.plan(), engine.options(), middle, n_texts);
    (needed <= bytes ? fits : too_long) = middle;
  }
  return fits;
}

// " for each of 4 texts"; nothing for one text.
std::string of_each(std::size_t n_texts) {
  return n_texts == 1 ? "" : fmt::format(" for each of {} texts", n_texts);
}

}  // namespace

double session_bytes(const Plan& plan, const EngineOptions& options, std::size_t context,
                     std::size_t n_texts) {
  const SequenceBytes sequence = sequence_bytes(plan, options, context);
  const double one = sequence.cache + sizeof(float) * static_cast<double>(plan.vocab_size) +
                     sizeof(TokenId) * static_cast<double>(context);
  return static_cast<double>(n_texts) * one + sequence.workspace;
}

std::size_t default_context(const Plan& plan) {
  return std::min<std::size_t>(plan.max_seq_len, 4096);
}

void check_memory(const Engine& engine, std::size_t context, std::size_t n_texts) {
  const double memory = usable_memory();
  const double needed = session_bytes(engine.plan(), engine.options(), context, n_texts);
  if (memory == 0.0 || needed <= memory) return;
  throw Error("context: expected at most {} tokens{} (they fit into {:.1f} GB of memory), found {}",
              longest_context(engine, context, n_texts, memory), of_each(n_texts), memory * 1e-9,
              context);
}

void check_text_memory(std::size_t n_tokens, double bytes) {
  const double memory = usable_memory();
  if (memory == 0.0 || bytes <= memory) return;
  throw Error(
      "text: expected one that needs at most {:.1f} GB of memory, found {} tokens that need "
      "{:.1f} GB",
      memory * 1e-9, n_tokens, bytes * 1e-9);
}

Error no_memory(const Engine& engine, std::size_t context, std::size_t n_texts) {
  return Error("context: {} tokens{} need {:.1f} GB, more memory than is available", context,
               of_each(n_texts),
               session_bytes(engine.plan(), engine.options(), context, n_texts) * 1e-9);
}

}  // namespace stagecraft
