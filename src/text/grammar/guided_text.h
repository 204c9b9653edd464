#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/grammar/byte_automaton.h"
#include "text/grammar/token_grammar.h"

namespace stagecraft {

// One text that is generated under a grammar. Finds the tokens that may come next.
//
//   grammar -> automaton over bytes ----+
//   vocabulary -> tree of bytes --------+--> allowed(): one walk over the tree per new state
//
// The walk leaves a branch at the first byte that the grammar forbids. Its result is stored per
// state. Inside a JSON string the state usually stays the same, so a string costs one walk instead
// of one per token.
class GuidedText {
 public:
  explicit GuidedText(const TokenGrammar& rules);

  // One bit per token id: 1 if this token may come next. Valid until the next call. Throws
  // GrammarError if the grammar is too large or too ambiguous (ByteAutomaton::next), or if the text
  // is not complete, but no token may come next.
  std::span<const std::uint64_t> allowed();
  // Whether the text so far is a complete text of the grammar. More tokens may be allowed.
  bool accepts() const { return automaton_.accepts(state_); }
  // accepts(), and nothing may follow.
  bool is_complete() const { return accepts() && automaton_.is_at_end(state_); }
  // Takes the next token. Throws Error if it is not allowed.
  void push(TokenId token);

 private:
  std::vector<std::uint64_t> walk();

  std::string where_;
  std::shared_ptr<const TokenTrie> tokens_;
  ByteAutomaton automaton_;
  ByteAutomaton::State state_;
  std::unordered_map<ByteAutomaton::State, std::vector<std::uint64_t>> masks_;
  std::vector<ByteAutomaton::State> path_;  // during walk(): the state at each depth of the tree
};

}  // namespace stagecraft
