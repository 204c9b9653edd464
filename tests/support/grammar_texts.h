#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "text/grammar/byte_automaton.h"

namespace stagecraft {

inline ByteAutomaton::State state_after(ByteAutomaton& automaton, std::string_view text) {
  ByteAutomaton::State state = automaton.start();
  for (const char byte : text) {
    automaton.renew_budget();
    if (state != ByteAutomaton::kDead) {
      state = automaton.next(state, static_cast<std::uint8_t>(byte));
    }
  }
  return state;
}

// Whether the grammar accepts the whole text.
inline bool matches(const Grammar& grammar, std::string_view text) {
  ByteAutomaton automaton(std::make_shared<const Grammar>(grammar));
  const ByteAutomaton::State state = state_after(automaton, text);
  return state != ByteAutomaton::kDead && automaton.accepts(state);
}

// A text of the grammar, made of random bytes that it allows; nullopt if the text is not complete
// after max_bytes bytes.
inline std::optional<std::string> random_text(ByteAutomaton& automaton, std::mt19937& random,
                                              std::size_t max_bytes) {
  ByteAutomaton::State state = automaton.start();
  std::string text;
  while (text.size() < max_bytes) {
    automaton.renew_budget();
    if (automaton.accepts(state) && (automaton.is_at_end(state) || random() % 8 == 0)) return text;
    std::string allowed;
    for (int byte = 0; byte < 256; ++byte) {
      if (automaton.next(state, static_cast<std::uint8_t>(byte)) != ByteAutomaton::kDead) {
        allowed += static_cast<char>(byte);
      }
    }
    if (allowed.empty()) return std::nullopt;
    // A byte that ends a string, an array or an object is chosen in at least a third of the cases.
    const std::size_t closing = allowed.find_first_of("\"]}");
    const bool close = closing != std::string::npos && random() % 3 == 0;
    text += allowed[close ? closing : random() % allowed.size()];
    state = automaton.next(state, static_cast<std::uint8_t>(text.back()));
  }
  return std::nullopt;
}

}  // namespace stagecraft
