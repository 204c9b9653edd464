#include "generation/session.h"

#include <algorithm>
#include <new>

#include "base/usable_memory.h"
#include "generation/feed_tokens.h"

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

std::unique_ptr<Sequence> make_sequence(Engine& engine, std::size_t context) {
  check_memory(engine, context);
  return engine.make_sequence(context);
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

Session::Session(Engine& engine, std::size_t context) try
    : engine_(engine),
      sequence_(make_sequence(engine, context)),
      logits_(1, engine.plan().vocab_size) {
  tokens_.reserve(context);
} catch (const std::bad_alloc&) {
  throw no_memory(engine, context);
}

bool Session::feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on) {
  return feed(tokens, go_on, false);
}

bool Session::feed_greedy(std::span<const TokenId> tokens, const std::function<bool()>& go_on) {
  return feed(tokens, go_on, true);
}

bool Session::feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on,
                   bool greedy) {
  if (tokens.size() > context() - tokens_.size()) {
    throw Error("context: expected at most {} more tokens ({} in all), found {}",
                context() - tokens_.size(), context(), tokens.size());
  }
  if (tokens.empty()) return true;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  try {
    // Begins at the end of the sequence: after truncate, it may be shorter than tokens_.
    const auto rest = std::span<const TokenId>(tokens_).subspan(sequence_->length());
    likeliest_ = -1;
    if (feed_tokens(engine_, *sequence_, rest, logits_.view(), go_on,
                    greedy ? &likeliest_ : nullptr)) {
      return true;
    }
  } catch (...) {
    tokens_.resize(sequence_->length());
    throw;
  }
  tokens_.resize(sequence_->length());
  return false;
}

void Session::truncate(std::size_t length) {
  if (length >= tokens_.size()) return;
  tokens_.resize(length);
  sequence_->truncate(length);
}

}  // namespace stagecraft
