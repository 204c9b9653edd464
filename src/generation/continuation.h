#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "generation/generate.h"
#include "generation/logit_rules.h"
#include "text/grammar/guided_text.h"

namespace stagecraft {

// Whether these options always choose the token with the largest logit: temperature 0, and no rule
// that could change which logit is the largest.
inline bool is_plain_greedy(const GenerationOptions& options, const LogitRules& rules) {
  return options.sampler.temperature == 0.0f && options.repeat_penalty == 1.0f &&
         rules.change_nothing();
}

// One of several texts that are generated together: its tokens, and the rules for choosing the next
// token and for ending the text. The rules and their order are those of generate(), but there is no
// session: the caller feeds the tokens and provides the logits. The logits are changed before the
// choice: by bias and penalties, by the grammar, and by min_p. The grammar sets the logits of
// forbidden tokens to -infinity, and those of end tokens while the text is not complete.
//
// Three loops use it: a session's (next_token), that of generate_batch(), and the server's. The
// last two compute several texts per pass. generate() is a fourth loop: it is stage 7, and needs
// nothing but a Session.
class Continuation {
 public:
  // prompt: 1 to `context` tokens. context: the most tokens of the whole text. grammar: may be
  // null. It need not outlive this object, which shares its rules and its tree of tokens.
  // rules.bias: tokens of the vocabulary.
  Continuation(std::vector<TokenId> prompt, const GenerationOptions& options, Random random,
               std::size_t context, const TokenGrammar* grammar = nullptr, LogitRules rules = {})
      : tokens_(std::move(prompt)),
        n_prompt_(tokens_.size()),
        options_(options),
        random_(random),
        context_(context),
        rules_(std::move(rules)) {
    if (grammar != nullptr) guide_.emplace(*grammar);
  }

  struct Step {
    std::optional<TokenId> token;   // the new token; nullopt if the text ended before it
    std::optional<StopReason> end;  // why the text has ended; nullopt if it has not
  };
  // logits     [vocab_size]  the scores after the last token; changed by the rules and the grammar
  // scratch    [vocab_size]  written: memory to work in
  // likeliest  the next token, if the backend has chosen it: then logits are not read; or -1
  Step next(std::span<float> logits, std::span<TokenProbability> scratch, TokenId likeliest = -1);
  // Whether its next token is the likeliest one, whatever its tokens are. See
  // Backend::forward_greedy.
  bool is_greedy() const { return is_plain_greedy(options_, rules_) && !guide_; }

  std::span<const TokenId> tokens() const { return tokens_; }  // the prompt, then the new tokens
  std::span<const TokenId> made() const { return tokens().subspan(n_prompt_); }
  std::size_t prompt_size() const { return n_prompt_; }
  const Random& random() const { return random_; }  // as the last token left it

 private:
  bool forbid_others(std::span<float> logits);

  std::vector<TokenId> tokens_;
  std::size_t n_prompt_;
  GenerationOptions options_;
  Random random_;
  std::size_t context_;
  LogitRules rules_;
  TokenCounts counts_;  // of made(), if rules_.counts_tokens()
  std::optional<GuidedText> guide_;
};

// Feeds the tokens of `text` that `session` lacks, and chooses the next token. scratch: as in
// Continuation::next. go_on: as in Session::feed; if it returns false, the text ends with
// StopReason::Stopped.
Continuation::Step next_token(Session& session, Continuation& text,
                              std::span<TokenProbability> scratch,
                              const std::function<bool()>& go_on = {});

}  // namespace stagecraft
