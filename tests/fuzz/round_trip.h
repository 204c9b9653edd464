#pragma once

#include "base/error.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace stagecraft {

// A tokenizer that opens must turn any text into ids of its vocabulary, or throw Error. The ids
// must give the same text decoded at once and one by one.
inline void try_tokenizer(const std::filesystem::path& path, std::string_view text) {
  constexpr std::size_t kMaxBytes = 256;  // small, because a tokenizer may lengthen a text
  const std::string utf8 = utf8_with_replacements(text.substr(0, kMaxBytes));
  try {
    const Tokenizer tokenizer = Tokenizer::open(path);
    for (const bool parse_special : {false, true}) {
      const std::vector<TokenId> ids =
          tokenizer.encode(utf8, {.parse_special = parse_special, .add_special = parse_special});
      StreamDecoder stream(tokenizer);
      std::string shown;
      for (const TokenId id : ids) {
        require(id >= 0 && static_cast<std::size_t>(id) < tokenizer.vocab_size(),
                "an id is one of the vocabulary");
        shown += stream.push(id);
      }
      shown += stream.finish();
      require(shown == utf8_with_replacements(tokenizer.decode(ids)),
              "a stream shows what decode() gives");
    }
  } catch (const Error&) {
  }
}

}  // namespace stagecraft
