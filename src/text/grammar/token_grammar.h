#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/grammar/byte_automaton.h"
#include "text/grammar/token_trie.h"

namespace stagecraft {

// A grammar, and the tokens that a text under it is made of. Immutable; texts share it.
struct TokenGrammar {
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const TokenTrie> tokens;
};

// Makes them for one vocabulary, whose tree is built when the first is asked for. For one thread.
class TokenGrammars {
 public:
  explicit TokenGrammars(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}  // must outlive it
  // As Grammar::parse.
  TokenGrammar parse(std::string_view gbnf, const std::string& where);

 private:
  const Tokenizer& tokenizer_;
  std::shared_ptr<const TokenTrie> tokens_;
};

// One text that is being written under a grammar: which token may come next.
//
//   grammar -> automaton over bytes ----+
//   vocabulary -> tree of bytes --------+--> allowed(): one walk over the tree per new state
//
// The walk leaves a branch at the first byte that the grammar forbids; its result is kept per
// state, so a string of JSON costs one walk, not one per token.
class GuidedText {
 public:
  explicit GuidedText(const TokenGrammar& rules);

  // One bit per token id: may it come next? Valid until the next call. Throws Error if the grammar
  // takes too long to follow.
  std::span<const std::uint64_t> allowed();
  // Is the text in the grammar as it stands?
  bool accepts() const { return automaton_.accepts(state_); }
  // Is it, and can nothing follow?
  bool is_complete() const { return accepts() && automaton_.is_at_end(state_); }
  // Takes the next token. Throws Error if it is not allowed.
  void push(TokenId token);

 private:
  std::vector<std::uint64_t> walk();

  std::shared_ptr<const TokenTrie> tokens_;
  ByteAutomaton automaton_;
  ByteAutomaton::State state_;
  std::unordered_map<ByteAutomaton::State, std::vector<std::uint64_t>> masks_;
  std::vector<ByteAutomaton::State> path_;  // of the walk: the state per depth
};

}  // namespace stagecraft
