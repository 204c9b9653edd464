#include "model/placement.h"

#include "base/error.h"

namespace stagecraft {

Placement place_text(const Plan& plan, std::span<const TokenId> tokens) {
  if (!plan.prompt) return {};
  const auto& [end, masks] = *plan.prompt;
  const auto prompt = tokens.first(first_pass(plan, tokens) - 1);
  if (prompt.size() == tokens.size()) {
    throw Error(
        "forward: expected the whole prompt, up to token {}, in the first pass: tokens of the "
        "prompt also attend to later ones",
        end);
  }
  if (prompt.empty()) return {.apart = true};
  for (const TokenId mask : masks) {
    const auto found = std::ranges::find(prompt, mask);
    if (found == prompt.end()) continue;
    return {true, prompt.size(), static_cast<std::size_t>(found - prompt.begin())};
  }
  throw Error(
      "forward: prompt: expected mask token {} (the place of the answer) before token {}, found "
      "none",
      masks.front(), end);
}

std::size_t first_pass(const Plan& plan, std::span<const TokenId> tokens) {
  if (!plan.prompt) return 1;
  const auto end = std::ranges::find(tokens, plan.prompt->end);
  return static_cast<std::size_t>(end - tokens.begin()) + 1;
}

std::size_t pass_rows(const Plan& plan, std::size_t usual, std::size_t context) {
  return plan.prompt ? context : std::min(usual, context);
}

}  // namespace stagecraft
