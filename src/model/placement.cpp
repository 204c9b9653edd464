#include "model/placement.h"

#include <fmt/format.h>

#include "base/error.h"

namespace stagecraft {
namespace {

// The tokens before the one that ends the prompt; all tokens if none does.
std::span<const TokenId> before_end(const PromptRule& rule, std::span<const TokenId> tokens) {
  return {tokens.begin(), std::ranges::find(tokens, rule.end)};
}

// The index of the mask token that counts; that of the end if the prompt has none.
std::size_t find_mask(const PromptRule& rule, std::span<const TokenId> prompt) {
  const auto mask = std::ranges::find_if(
      rule.masks, [&](TokenId one) { return std::ranges::count(prompt, one) != 0; });
  if (mask == rule.masks.end()) return prompt.size();
  return static_cast<std::size_t>(std::ranges::find(prompt, *mask) - prompt.begin());
}

}  // namespace

std::string prompt_problem(const PromptRule& rule, std::span<const TokenId> tokens) {
  const auto prompt = before_end(rule, tokens);
  if (prompt.size() == tokens.size()) {
    return fmt::format(
        "expected the whole prompt, up to token {}, at once (its tokens also attend to "
        "later ones), found none",
        rule.end);
  }
  if (prompt.empty() || find_mask(rule, prompt) != prompt.size()) return "";
  return fmt::format("expected mask token {} (the place of the answer) before token {}, found none",
                     rule.masks.front(), rule.end);
}

Placement place_text(const Plan& plan, std::span<const TokenId> tokens) {
  if (!plan.prompt) return {};
  const std::string problem = prompt_problem(*plan.prompt, tokens);
  if (!problem.empty()) throw Error("prompt: {}", problem);
  const auto prompt = before_end(*plan.prompt, tokens);
  if (prompt.empty()) return {.apart = true};
  return {true, prompt.size(), find_mask(*plan.prompt, prompt)};
}

std::size_t first_pass(const Plan& plan, std::span<const TokenId> tokens) {
  if (!plan.prompt) return 1;
  return before_end(*plan.prompt, tokens).size() + 1;
}

std::size_t pass_rows(const Plan& plan, std::size_t max_rows, std::size_t context) {
  return plan.prompt ? context : std::min(max_rows, context);
}

}  // namespace stagecraft
