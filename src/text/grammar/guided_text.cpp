#include "text/grammar/guided_text.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace stagecraft {
namespace {

// With more, all but the current state are dropped. A million stacks take about 50 MB.
constexpr std::size_t kMaxStates = 4096;
constexpr std::size_t kMaxStacks = 1'000'000;
constexpr std::size_t kMaxMasks = 64;

}  // namespace

GuidedText::GuidedText(const TokenGrammar& rules)
    : where_(rules.grammar->where()),
      tokens_(rules.tokens),
      automaton_(rules.grammar),
      state_(automaton_.start()),
      path_(rules.tokens->max_depth() + 1) {}

std::span<const std::uint64_t> GuidedText::allowed() {
  if (const auto known = masks_.find(state_); known != masks_.end()) return known->second;
  if (automaton_.n_states() > kMaxStates || automaton_.n_stacks() > kMaxStacks) {
    state_ = automaton_.keep_only(state_);
    masks_.clear();
    if (automaton_.n_stacks() > kMaxStacks) {
      throw GrammarError(where_, fmt::format("too ambiguous: expected at most {} open rules in all "
                                             "readings of the text, found more",
                                             kMaxStacks));
    }
  }
  if (masks_.size() == kMaxMasks) masks_.clear();
  std::vector<std::uint64_t> mask = walk();
  if (!accepts() && std::ranges::count(mask, 0u) == std::ssize(mask)) {
    throw GrammarError(where_, "no token of the vocabulary can continue the text");
  }
  return masks_[state_] = std::move(mask);
}

std::vector<std::uint64_t> GuidedText::walk() {
  automaton_.renew_budget();
  std::vector<std::uint64_t> mask((tokens_->vocab_size() + 63) / 64);
  const auto nodes = tokens_->nodes();
  path_[0] = state_;
  for (std::size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const ByteAutomaton::State next = automaton_.next(path_[node.depth - 1], node.byte);
    if (next == ByteAutomaton::kDead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = next;
    for (const TokenId token : tokens_->tokens_of(i)) {
      mask[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (token % 64);
    }
    ++i;
  }
  return mask;
}

void GuidedText::push(TokenId token) {
  const std::string_view text = tokens_->text(token);
  ByteAutomaton::State state = text.empty() ? ByteAutomaton::kDead : state_;
  automaton_.renew_budget();
  for (const char byte : text) state = automaton_.next(state, static_cast<std::uint8_t>(byte));
  if (state == ByteAutomaton::kDead)
    throw Error("grammar: token {} is not allowed after this text", token);
  state_ = state;
}

}  // namespace stagecraft
