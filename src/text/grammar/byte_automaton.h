#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "text/grammar/grammar.h"

namespace stagecraft {

// Reads a text byte by byte and knows, at each place, which bytes a grammar allows next.
//
//   a stack    a position in the grammar, and below it where to go on when its rule is done
//   a state    the set of stacks that the text so far allows
//   a table    from a state and a byte to the next state, filled when first asked for
//
// Stacks share what lies below them: one that was made before is found again by its two numbers, so
// equal states are one state, and a text that repeats itself (the characters of a string) costs one
// look into the table per byte. Not for several threads at once: each text has an automaton.
class ByteAutomaton {
 public:
  using State = std::uint32_t;
  static constexpr State kDead = 0;  // no text that begins so is in the grammar

  explicit ByteAutomaton(std::shared_ptr<const Grammar> grammar);

  State start();
  // Throws Error if the grammar is so ambiguous that the work since renew_budget() is too much.
  State next(State state, std::uint8_t byte);
  // Is the text that led here in the grammar as it stands?
  bool accepts(State state) const { return states_[state].accepts; }
  // Is no byte possible any more?
  bool is_at_end(State state) const { return states_[state].stacks.empty(); }

  std::size_t n_states() const { return states_.size(); }
  // Forgets all states but this one; returns its new number.
  State keep_only(State state);

  void renew_budget() { work_ = 0; }
  static constexpr std::size_t kMaxWork = 300'000;  // stacks looked at: about 0.1 s

 private:
  using StackId = std::uint32_t;
  static constexpr StackId kBottom = 0;
  struct Stack {
    Grammar::Position position = 0;
    StackId below = kBottom;
  };
  struct Content {
    std::vector<StackId> stacks;  // in order; each at a set of bytes
    bool accepts = false;
  };
  struct Hash {
    std::size_t operator()(const std::vector<StackId>& stacks) const;
  };

  StackId stack(Grammar::Position position, StackId below);
  void follow(StackId begin, Content& content);
  State state_of(Content content);
  State compute(State state, std::uint8_t byte);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Stack> stacks_;
  std::unordered_map<std::uint64_t, StackId> stack_ids_;
  std::vector<std::uint32_t> seen_;  // per stack: the last follow() that met it
  std::uint32_t round_ = 0;
  std::vector<StackId> todo_;
  std::vector<Content> states_;
  std::unordered_map<std::vector<StackId>, State, Hash> state_ids_;  // the last number: accepts
  std::vector<State> table_;                                         // [n_states, n_classes]
  std::size_t work_ = 0;
};

}  // namespace stagecraft
