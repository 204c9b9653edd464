#include "text/grammar/byte_automaton.h"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

using Kind = Grammar::Symbol::Kind;

}  // namespace

ByteAutomaton::ByteAutomaton(std::shared_ptr<const Grammar> grammar, std::size_t max_work)
    : grammar_(std::move(grammar)), max_work_(max_work), stacks_(1), seen_(1) {
  state_of({});  // kDead
}

std::size_t ByteAutomaton::Hash::operator()(const std::vector<StackId>& stacks) const {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, one number per step
  for (const StackId id : stacks) hash = (hash ^ id) * 0x100000001b3;
  return hash ^ hash >> 29;
}

ByteAutomaton::StackId ByteAutomaton::stack(Grammar::Position position, StackId below) {
  const std::uint64_t key = std::uint64_t{position} << 32 | below;
  const auto [found, is_new] = stack_ids_.try_emplace(key, static_cast<StackId>(stacks_.size()));
  if (is_new) {
    stacks_.push_back({position, below});
    seen_.push_back(0);
  }
  return found->second;
}

// Adds all stacks that are reachable from `begin` without a byte. A rule at the end of a sequence
// pushes no return position. Otherwise each a of "a"* would make the stack deeper.
void ByteAutomaton::follow(StackId begin, Content& content) {
  todo_.assign(1, begin);
  while (!todo_.empty()) {
    const StackId id = todo_.back();
    todo_.pop_back();
    if (++work_ > max_work_) {
      throw GrammarError(
          grammar_->where(),
          fmt::format("too large or too ambiguous: expected at most {} steps per token, found more",
                      max_work_));
    }
    if (seen_[id] == round_) continue;
    seen_[id] = round_;
    if (id == kBottom) {
      content.accepts = true;
      continue;
    }
    const Stack at = stacks_[id];
    const Grammar::Symbol symbol = grammar_->at(at.position);
    if (symbol.kind == Kind::End) {
      todo_.push_back(at.below);
    } else if (symbol.kind == Kind::Bytes) {
      content.stacks.push_back(id);
    } else {
      const bool is_last = grammar_->at(at.position + 1).kind == Kind::End;
      const StackId below = is_last ? at.below : stack(at.position + 1, at.below);
      for (const Grammar::Position sequence : grammar_->sequences(symbol.index)) {
        todo_.push_back(stack(sequence, below));
      }
    }
  }
}

ByteAutomaton::State ByteAutomaton::state_of(Content content) {
  std::ranges::sort(content.stacks);
  std::vector<StackId> key = content.stacks;
  key.push_back(content.accepts ? 1 : 0);
  const auto [found, is_new] =
      state_ids_.try_emplace(std::move(key), static_cast<State>(states_.size()));
  if (is_new) {
    n_in_states_ += content.stacks.size();
    states_.push_back(std::move(content));
    table_.resize(table_.size() + grammar_->n_classes(), kUnknown);
  }
  return found->second;
}

ByteAutomaton::State ByteAutomaton::start() {
  Content content;
  ++round_;
  for (const Grammar::Position sequence : grammar_->sequences(grammar_->root())) {
    follow(stack(sequence, kBottom), content);
  }
  return state_of(std::move(content));
}

ByteAutomaton::State ByteAutomaton::compute(State state, std::uint8_t byte) {
  Content content;
  ++round_;
  work_ += states_[state].stacks.size();
  for (const StackId id : states_[state].stacks) {
    const Stack at = stacks_[id];
    if (!grammar_->bytes(grammar_->at(at.position)).test(byte)) continue;
    follow(stack(at.position + 1, at.below), content);
  }
  const State found = state_of(std::move(content));  // may make the table larger
  table_[state * grammar_->n_classes() + grammar_->class_of(byte)] = found;
  return found;
}

ByteAutomaton::State ByteAutomaton::keep_only(State state) {
  // A stack is created after the one below it, so a loop from the last to the first finds all used
  // stacks.
  std::vector<bool> used(stacks_.size(), false);
  for (const StackId id : states_[state].stacks) used[id] = true;
  for (std::size_t id = stacks_.size(); id-- > 1;) {
    if (used[id]) used[stacks_[id].below] = true;
  }
  const std::vector<Stack> old = std::exchange(stacks_, std::vector<Stack>(1));
  Content content = std::move(states_[state]);
  stack_ids_.clear();
  seen_.assign(1, 0);
  states_.clear();
  n_in_states_ = 0;
  state_ids_.clear();
  table_.clear();
  std::vector<StackId> moved(old.size(), kBottom);
  for (std::size_t id = 1; id < old.size(); ++id) {
    if (used[id]) moved[id] = stack(old[id].position, moved[old[id].below]);
  }
  for (StackId& id : content.stacks) id = moved[id];
  state_of({});  // kDead
  return state_of(std::move(content));
}

}  // namespace stagecraft
