#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "text/grammar/grammar.h"

namespace stagecraft {

// Reads a text byte by byte. After each byte it knows which bytes the grammar allows next.
//
//   a stack    a position in the grammar; below it, the positions to return to at the end of a rule
//   a state    the set of all stacks that fit the text so far
//   a table    from a state and a byte to the next state; an entry is computed at its first use
//
// A stack is stored as two numbers: its position and the number of the stack below it. Equal stacks
// are stored once, so equal states have the same number. If a text stays in a few states (such as
// inside a string), each byte costs one table lookup. Not thread-safe: each text needs its own
// automaton.
class ByteAutomaton {
 public:
  using State = std::uint32_t;
  static constexpr State kDead = 0;  // no text of the grammar begins like this

  // max_work: how many stacks may be visited after renew_budget(); each visit counts.
  explicit ByteAutomaton(std::shared_ptr<const Grammar> grammar, std::size_t max_work = kMaxWork);
  static constexpr std::size_t kMaxWork = 300'000;  // about 0.1 s

  // start() and next() throw GrammarError if they visit more than max_work stacks: the grammar is
  // too ambiguous, or has too many rules that may come next.
  State start();
  State next(State state, std::uint8_t byte) {
    const State known = table_[state * grammar_->n_classes() + grammar_->class_of(byte)];
    return known != kUnknown ? known : compute(state, byte);
  }
  // Whether the text read so far is a complete text of the grammar. More bytes may be allowed.
  bool accepts(State state) const { return states_[state].accepts; }
  // Whether no further byte is possible.
  bool is_at_end(State state) const { return states_[state].stacks.empty(); }

  std::size_t n_states() const { return states_.size(); }
  // What the memory grows with: all stacks, and how often a state contains one.
  std::size_t n_stacks() const { return stacks_.size() + n_in_states_; }
  // Forgets all states except `state`; returns its new number.
  State keep_only(State state);

  void renew_budget() { work_ = 0; }

 private:
  static constexpr State kUnknown = static_cast<State>(-1);  // not computed yet
  using StackId = std::uint32_t;
  static constexpr StackId kBottom = 0;
  struct Stack {
    Grammar::Position position = 0;
    StackId below = kBottom;
  };
  struct Content {
    std::vector<StackId> stacks;  // sorted; the next symbol of each is a set of bytes
    bool accepts = false;
  };
  struct Hash {
    std::size_t operator()(const std::vector<StackId>& stacks) const;
  };

  StackId stack(Grammar::Position position, StackId below);
  void follow(StackId begin, Content& content);
  State state_of(Content content);
  State compute(State state, std::uint8_t byte);  // and writes it into the table

  std::shared_ptr<const Grammar> grammar_;
  std::size_t max_work_;
  std::vector<Stack> stacks_;
  std::unordered_map<std::uint64_t, StackId> stack_ids_;
  std::vector<std::uint32_t> seen_;  // per stack: the last round_ in which it was visited
  std::uint32_t round_ = 0;
  std::vector<StackId> todo_;
  std::vector<Content> states_;
  std::size_t n_in_states_ = 0;  // the sum of the sizes of their stacks
  std::unordered_map<std::vector<StackId>, State, Hash> state_ids_;  // last number: `accepts`
  std::vector<State> table_;                                         // [n_states, n_classes]
  std::size_t work_ = 0;
};

}  // namespace stagecraft
