#pragma once

#include <algorithm>
#include <span>

#include "model/plan.h"

namespace stagecraft {

// Where the tokens of one text stand, and which of them see later ones. Token i usually stands at
// position i and sees tokens 0 to i. A plan with a PromptRule says otherwise, and then both follow
// from the tokens of the text's first pass (place_text): this is state of a text, as its keys are.
//
//   token         Positions::Text   Positions::Answer   sees tokens
//   i < prompt    i                 0                   0 to prompt - 1
//   i >= prompt   mask              i - prompt + 1      0 to i
struct Placement {
  bool apart = false;  // prompt and answer are counted apart, as in the table
  std::size_t prompt = 0;
  std::size_t mask = 0;

  std::size_t position(Positions positions, std::size_t index) const {
    if (positions == Positions::Answer) return index < prompt ? 0 : index - prompt + 1;
    return !apart || index < prompt ? index : mask;
  }
  // The first tokens that token `index` sees.
  std::size_t seen(std::size_t index) const { return std::max(index + 1, prompt); }
  // How many of the first `length` tokens may stay where the later ones are forgotten. A prompt
  // without its end would be another prompt, whose keys have seen other tokens.
  std::size_t kept(std::size_t length) const { return !apart || length > prompt ? length : 0; }
};

// Of a text that begins with these tokens, those of its first pass. Throws Error if the plan has a
// PromptRule and none of them ends the prompt, or if a prompt that is not empty has no mask.
Placement place_text(const Plan& plan, std::span<const TokenId> tokens);

// The least tokens that the first pass of this text must have: a prompt that sees itself both ways
// cannot be cut. 1 for other models.
std::size_t first_pass(const Plan& plan, std::span<const TokenId> tokens);

// The most tokens of a pass: `usual`, or all of the context where a prompt cannot be cut.
std::size_t pass_rows(const Plan& plan, std::size_t usual, std::size_t context);

}  // namespace stagecraft
