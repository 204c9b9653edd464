#include "generation/continuation.h"

#include <algorithm>
#include <limits>

#include "generation/repeat_penalty.h"

namespace stagecraft {

Continuation::Step Continuation::next(std::span<float> logits, std::span<TokenProbability> scratch,
                                      TokenId likeliest) {
  if (made().size() == options_.max_tokens) return {{}, StopReason::MaxTokens};
  TokenId token = likeliest;
  if (token < 0) {
    const auto recent = tokens().last(std::min(tokens_.size(), options_.repeat_last_n));
    penalize_repeats(logits, recent, options_.repeat_penalty);
    change_logits(logits, rules_, counts_);
    if (guide_ && !forbid_others(logits)) return {{}, StopReason::EndToken};
    forbid_unlikely(logits, options_.sampler.temperature, rules_.min_p);
    token = sample(logits, options_.sampler, random_.uniform(), scratch);
  }
  if (std::ranges::find(options_.end_tokens, token) != options_.end_tokens.end()) {
    return {{}, StopReason::EndToken};
  }
  tokens_.push_back(token);
  if (rules_.counts_tokens()) ++counts_[token];
  if (guide_) {
    guide_->push(token);
    if (guide_->is_complete()) return {token, StopReason::EndToken};
  }
  if (made().size() == options_.max_tokens) return {token, StopReason::MaxTokens};
  if (tokens_.size() > context_) return {token, StopReason::ContextFull};
  return {token, {}};
}

// Sets the logits of forbidden tokens to -infinity. Returns false if no token may follow, so the
// text has ended.
bool Continuation::forbid_others(std::span<float> logits) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const auto allowed = guide_->allowed();
  if (std::ranges::count(allowed, 0u) == std::ssize(allowed)) return false;
  std::vector<std::pair<std::size_t, float>> ends;  // those that are allowed here
  if (guide_->accepts()) {
    for (const TokenId token : options_.end_tokens) {
      const auto at = static_cast<std::size_t>(token);
      if (at < logits.size()) ends.emplace_back(at, logits[at]);
    }
  }
  for (std::size_t word = 0; word * 64 < logits.size(); ++word) {
    const std::uint64_t bits = word < allowed.size() ? allowed[word] : 0;
    if (bits == ~std::uint64_t{0}) continue;
    const auto part =
        logits.subspan(word * 64, std::min<std::size_t>(64, logits.size() - word * 64));
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = (bits >> i & 1) != 0 ? part[i] : kNever;
  }
  for (const auto& [at, logit] : ends) logits[at] = logit;
  return true;
}

Continuation::Step next_token(Session& session, Continuation& text,
                              std::span<TokenProbability> scratch,
                              const std::function<bool()>& go_on) {
  const auto rest = text.tokens().subspan(session.tokens().size());
  const bool fed = text.is_greedy() ? session.feed_greedy(rest, go_on) : session.feed(rest, go_on);
  if (!fed) return {{}, StopReason::Stopped};
  return text.next(session.logits(), scratch, session.likeliest());
}

}  // namespace stagecraft
