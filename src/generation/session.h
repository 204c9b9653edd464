#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/engine.h"

namespace stagecraft {

// The memory in bytes that n_texts sessions of one engine come to use, each with room for `context`
// tokens: keys, values, logits, and what a forward pass writes, which is there once. Pages that are
// never reached cost nothing.
double session_bytes(const Plan& plan, const EngineOptions& options, std::size_t context,
                     std::size_t n_texts = 1);

// The memory of this machine in bytes; 0 or less where the system does not say.
double memory_bytes();

// The context in tokens if nobody names one: that of the model's training, at most 4,096.
std::size_t default_context(const Plan& plan);

// Returns `context` if this machine has memory for that many tokens of n_texts texts, else throws
// Error: better now than when the operating system ends the program in the middle of a story.
std::size_t affordable_context(const Engine& engine, std::size_t context, std::size_t n_texts = 1);

// One text in the making: its tokens, what the engine has computed of them, and the scores of the
// token after the last. Nothing is allocated after it is made.
class Session {
 public:
  // context: the most tokens it can hold. The engine must outlive the session. Throws Error if
  // memory or threads cannot be allocated.
  Session(Engine& engine, std::size_t context);

  // Computes these tokens after the ones it has. logits() then scores the token that comes next.
  // A long text takes several passes. Between two of them feed calls go_on, if it is set; if that
  // returns false, feed stops and returns false: computed tokens stay, and the logits are stale.
  // Throws Error if they do not fit into the context or an id is out of range.
  bool feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on = {});

  // The same for a text whose next token is the likeliest one. Then likeliest() is that token, or
  // it is -1 and logits() are there as after feed.
  bool feed_greedy(std::span<const TokenId> tokens, const std::function<bool()>& go_on = {});
  TokenId likeliest() const { return likeliest_; }

  // [vocab_size]: the scores after the last token fed. Writable, for penalties.
  std::span<float> logits() { return logits_.view().row(0); }

  // Forgets every token from `length` on. The logits are stale until the next feed, which computes
  // tokens before `length` again where the model's state could not be cut there.
  void truncate(std::size_t length);

  // All that were fed and not forgotten.
  std::span<const TokenId> tokens() const { return tokens_; }
  // How many of them need not be computed again, see truncate.
  std::size_t computed() const { return sequence_->length(); }
  std::size_t context() const { return sequence_->capacity(); }
  std::size_t n_threads() const { return engine_.n_threads(); }
  const Engine& engine() const { return engine_; }
  Engine& engine() { return engine_; }

 private:
  bool feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on, bool greedy);

  Engine& engine_;
  std::unique_ptr<Sequence> sequence_;
  Matrix<float> logits_;
  TokenId likeliest_ = -1;
  std::vector<TokenId> tokens_;
};

}  // namespace stagecraft
