#pragma once

#include <optional>
#include <span>
#include <vector>

#include "generation/generate.h"
#include "text/grammar/token_grammar.h"

namespace stagecraft {

// Always the likeliest token, and no penalty changes which one that is.
inline bool is_plain_greedy(const GenerationOptions& options) {
  return options.sampler.temperature == 0.0f && options.repeat_penalty == 1.0f;
}

// One text of several that are made side by side: its tokens, and the rules by which the next one
// is chosen and the text ends. They are generate()'s rules in generate()'s order, without its
// session: whoever holds it feeds the tokens and brings the logits. With a grammar, tokens that it
// forbids get the logit -infinity before the choice, end tokens too while the text is not complete.
class Continuation {
 public:
  // prompt: at least one token, at most `context`, which is the most tokens of the whole text.
  // grammar: may be null.
  Continuation(std::vector<TokenId> prompt, const GenerationOptions& options, Random random,
               std::size_t context, const TokenGrammar* grammar = nullptr)
      : tokens_(std::move(prompt)),
        n_prompt_(tokens_.size()),
        options_(options),
        random_(random),
        context_(context) {
    if (grammar != nullptr) guide_.emplace(*grammar);
  }

  struct Step {
    std::optional<TokenId> token;   // the new token; none where the text ended before it
    std::optional<StopReason> end;  // why the text has ended, if it has
  };
  // logits     [vocab_size]  the scores after the last token; changed by penalty and grammar
  // scratch    [vocab_size]
  // likeliest  a token that was chosen already, and logits are not read; or -1
  Step next(std::span<float> logits, std::span<TokenProbability> scratch, TokenId likeliest = -1);
  // Is its next token the likeliest one, whatever its tokens are? See Backend::forward_greedy.
  bool is_greedy() const { return is_plain_greedy(options_) && !guide_; }

  std::span<const TokenId> tokens() const { return tokens_; }  // those of the prompt first
  std::span<const TokenId> made() const { return tokens().subspan(n_prompt_); }
  std::size_t prompt_size() const { return n_prompt_; }

 private:
  bool forbid_others(std::span<float> logits);

  std::vector<TokenId> tokens_;
  std::size_t n_prompt_;
  GenerationOptions options_;
  Random random_;
  std::size_t context_;
  std::optional<GuidedText> guide_;
};

}  // namespace stagecraft
