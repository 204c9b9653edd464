#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// The meaning of a name in "tokenizer.ggml.pre", as fields of a tokenizer.json.
struct GgufPreTokenizer {
  std::string_view normalizer;  // JSON
  std::string pre_tokenizer;    // JSON
  bool ignore_merges = false;   // a piece that is a token becomes that token
  bool adds_bos = false;        // the default of "tokenizer.ggml.add_bos_token"
};

// All known names. Of several names with one meaning, the most usual comes first.
std::vector<std::string_view> gguf_pre_tokenizer_names();

// nullptr if the name is not known.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

}  // namespace stagecraft
