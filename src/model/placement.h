#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "model/plan.h"

namespace stagecraft {

// The positions of the tokens of one text, and which tokens each of them sees. Token i usually has
// position i and sees tokens 0 to i. Under a PromptRule, both depend on the tokens of the text's
// first pass (place_text). A text must therefore keep its Placement, as it keeps its keys.
//
//   token         Positions::Text   Positions::Answer   sees tokens
//   i < prompt    i                 0                   0 to prompt - 1
//   i >= prompt   mask              i - prompt + 1      0 to i
struct Placement {
  bool apart = false;  // prompt and answer have different positions, as in the table
  std::size_t prompt = 0;
  std::size_t mask = 0;

  std::size_t position(Positions positions, std::size_t index) const {
    if (positions == Positions::Answer) return index < prompt ? 0 : index - prompt + 1;
    return !apart || index < prompt ? index : mask;
  }
  // Token `index` sees the first seen(index) tokens.
  std::size_t seen(std::size_t index) const { return std::max(index + 1, prompt); }
  // How many tokens a text keeps when it is cut to `length` tokens. A cut inside the prompt keeps
  // none, because the keys of a shorter prompt would be different; a cut at its end neither,
  // because the prompt could then go on.
  std::size_t kept(std::size_t length) const { return !apart || length > prompt ? length : 0; }
};

// Why no text can have these tokens in its first pass ("expected token 5 ..."); "" if one can.
// Under a PromptRule, a token must end the prompt, and a prompt that is not empty must have a mask
// token.
std::string prompt_problem(const PromptRule& rule, std::span<const TokenId> tokens);

// The Placement of a text whose first pass has these tokens. Throws Error if the plan has a
// PromptRule and prompt_problem finds a problem.
Placement place_text(const Plan& plan, std::span<const TokenId> tokens);

// The smallest number of tokens for the first pass of this text: under a PromptRule, the whole
// prompt and its end, because each token of the prompt sees all of it. 1 for other models.
std::size_t first_pass(const Plan& plan, std::span<const TokenId> tokens);

// The largest number of tokens in a pass: `max_rows`, or the whole context under a PromptRule.
std::size_t pass_rows(const Plan& plan, std::size_t max_rows, std::size_t context);

}  // namespace stagecraft
